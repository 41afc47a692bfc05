package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// printAnswer prints what the caller asked for, and on errOut what is missing.
// base is the URL of the router that was asked, "" for the one in this process.
func printAnswer(out, errOut io.Writer, resp *contract.Response, base string) error {
	if resp.Data.DryRun {
		printDryRun(out, resp)
	}
	if err := printText(out, &resp.Data); err != nil {
		return err
	}
	switch d := &resp.Data; {
	case d.Mode == contract.DataClarification:
		complainUnclear(errOut, resp, base)
	case resp.Status == contract.StatusCancelled:
		complain(errOut, "cancelled: nobody waited for the answer any more")
	case d.Degraded: // the answer itself says what is served instead
		complain(errOut, "no model has answered: "+joinReason(d.DegradedReason, formatReason(d.DegradedReason)))
	case d.Proposal != nil:
		complain(errOut, "proposed: "+d.Proposal.Detail)
	case d.Unsupported != nil && d.Mode != contract.DataServerFallback:
		complain(errOut, fmt.Sprintf("unsupported (%s): %s", d.Reason, d.Detail))
	}
	for _, t := range resp.Tasks {
		switch {
		case t.Error != nil:
			complain(errOut, t.AgentID+": "+formatTaskError(t.Error))
		case t.Status == contract.TaskFailure:
			complain(errOut, t.AgentID+": the agent says that it failed")
		}
	}
	for _, o := range resp.Omitted {
		complain(errOut, fmt.Sprintf("left out: %s: %s", o.Title, formatOmitted(o.Reason)))
	}
	return nil
}

// printDryRun prints who would have been asked.
func printDryRun(out io.Writer, resp *contract.Response) {
	switch {
	case resp.Decision != nil && len(resp.Decision.Chosen) > 0:
		fmt.Fprintf(out, "%s: %s\n", resp.Status, strings.Join(resp.Decision.Chosen, ", "))
	case resp.Data.Mode == contract.DataServerFallback && !resp.Data.Degraded:
		fmt.Fprintf(out, "%s: no agent; the model would answer (fallback policy A)\n", resp.Status)
	}
}

// complainUnclear prints the question that has to be answered first.
func complainUnclear(errOut io.Writer, resp *contract.Response, base string) {
	d := &resp.Data
	question := string(resp.Status)
	if d.Because != "" {
		question += " (" + d.Because + ")"
	}
	complain(errOut, question+": "+d.Question)
	for i := range d.Options {
		complain(errOut, "option "+d.Options[i].ID+": "+formatOption(&d.Options[i]))
	}
	complain(errOut, formatHowToChoose(resp, base))
}

// printText prints the answer, or what the agents returned instead of text, as
// it is; on a terminal without what would control the terminal.
func printText(out io.Writer, d *contract.ResponseData) error {
	safe := func(s string) string { return s }
	if _, ok := asTerminal(out); ok {
		safe = printable
	}
	if d.Answer != "" {
		_, err := fmt.Fprintln(out, safe(d.Answer))
		return err
	}
	for _, r := range d.Results {
		if len(r.Data) == 0 {
			continue
		}
		data, err := strictjson.Marshal(r.Data)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", r.AgentID, safe(string(data))); err != nil {
			return err
		}
	}
	return nil
}
