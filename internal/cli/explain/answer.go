package explain

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// PrintAnswer prints the answer, and on errOut which parts are incomplete. base is the URL of
// the router, or "" for a router in this process; teach is the command that teaches the prompt.
func PrintAnswer(out, errOut io.Writer, resp *contract.Response, base, teach string) error {
	if resp.Data.DryRun {
		printDryRun(out, resp)
	}
	if err := printText(out, &resp.Data); err != nil {
		return err
	}
	printEmptyResults(errOut, &resp.Data)
	switch d := &resp.Data; {
	case d.Mode == contract.DataClarification:
		printClarification(errOut, resp, base)
	case resp.Status == contract.StatusCancelled:
		cmdline.PrintError(errOut, "cancelled")
	case d.Degraded: // the answer contains an explanation
		cmdline.PrintError(errOut, "no model has answered: "+joinReason(d.DegradedReason, formatReason(d.DegradedReason)))
	case d.Proposal != nil:
		cmdline.PrintError(errOut, "proposed: "+d.Proposal.Detail)
		printAdvice(errOut, formatNearestReading(d.Proposal.NearestReading, teach))
	case d.Unsupported != nil && d.Mode != contract.DataServerFallback:
		cmdline.PrintError(errOut, fmt.Sprintf("unsupported (%s): %s", d.Reason, d.Detail))
		printAdvice(errOut, formatNearestReading(d.NearestReading, teach))
	}
	for i := range resp.Tasks {
		switch t := &resp.Tasks[i]; {
		case t.Error != nil:
			cmdline.PrintError(errOut, t.AgentID+": "+formatTaskError(t.AgentID, t.Error))
		case t.Status == contract.TaskFailure:
			cmdline.PrintError(errOut, formatFailure(t, resp.Data.Results))
		}
	}
	for _, o := range resp.Omitted {
		cmdline.PrintError(errOut, fmt.Sprintf("left out: %s: %s", o.Title, formatOmitted(o.Reason)))
	}
	return nil
}

// printAdvice prints advice about an incomplete answer, if there is any.
func printAdvice(errOut io.Writer, advice string) {
	if advice != "" {
		cmdline.PrintError(errOut, advice)
	}
}

// formatFailure describes a failure that the agent itself reported.
func formatFailure(t *contract.TaskReport, results []contract.AgentResult) string {
	for i := range results {
		r := &results[i]
		if r.AgentID != t.AgentID || r.SubtaskTitle != t.SubtaskTitle {
			continue
		}
		if detail := formatFailureDetail(r); detail != "" {
			return t.AgentID + ": the agent returned a failure: " + detail
		}
	}
	return t.AgentID + ": the agent returned a failure"
}

// formatFailureDetail returns the explanations and the data of a failure, "" if it has none.
// The data of a tool of an MCP server is a code, a severity and a suggestion.
func formatFailureDetail(r *contract.AgentResult) string {
	rest := maps.Clone(r.Data)
	take := func(name string) string {
		var text string
		if raw, ok := rest[name]; ok && strictjson.Unmarshal(raw, &text) == nil {
			delete(rest, name)
		}
		return text
	}
	code, suggestion := take("error_code"), take("suggestion")
	if code != "" {
		take("severity")
	}
	details := slices.Clone(r.Explanations)
	if suggestion != "" {
		details = append(details, suggestion)
	}
	if len(rest) > 0 && (&contract.Result{Data: r.Data}).Text() == "" { // a text is printed as the answer
		if data, err := strictjson.Marshal(rest); err == nil {
			details = append(details, string(data))
		}
	}
	text := strings.Join(details, "; ")
	if code != "" {
		text = strings.TrimSuffix(code+": "+text, ": ")
	}
	return text
}

// printDryRun prints the agents that a request would be sent to.
func printDryRun(out io.Writer, resp *contract.Response) {
	switch {
	case resp.Decision != nil && len(resp.Decision.Chosen) > 0:
		fmt.Fprintf(out, "%s: %s\n", resp.Status, strings.Join(resp.Decision.Chosen, ", "))
	case resp.Data.Mode == contract.DataServerFallback && !resp.Data.Degraded:
		fmt.Fprintf(out, "%s: no agent; the model would answer (fallback policy A)\n", resp.Status)
	}
}

// printEmptyResults prints which agents completed their tasks without anything to print, if there
// is no answer.
func printEmptyResults(errOut io.Writer, d *contract.ResponseData) {
	for i := range d.Results {
		r := &d.Results[i]
		if d.Answer != "" || len(r.Data) > 0 || r.Status == contract.TaskFailure {
			continue
		}
		text := r.AgentID + ": completed, without a text or data"
		if len(r.Explanations) > 0 {
			text += ": " + strings.Join(r.Explanations, "; ")
		}
		cmdline.PrintError(errOut, text)
	}
}

func printClarification(errOut io.Writer, resp *contract.Response, base string) {
	d := &resp.Data
	question := string(resp.Status)
	if d.Because != "" {
		question += " (" + d.Because + ")"
	}
	cmdline.PrintError(errOut, question+": "+d.Question)
	for i := range d.Options {
		cmdline.PrintError(errOut, "option "+d.Options[i].ID+": "+formatOption(&d.Options[i]))
	}
	cmdline.PrintError(errOut, formatHowToChoose(resp, base))
}

// printText prints the answer, or the data of the results if there is no text, except that of
// failures, which are no answers. On a terminal it replaces control characters.
func printText(out io.Writer, d *contract.ResponseData) error {
	safe := func(s string) string { return s }
	if terminal.IsTerminal(out) {
		safe = terminal.Printable
	}
	if d.Answer != "" {
		_, err := fmt.Fprintln(out, safe(d.Answer))
		return err
	}
	for _, r := range d.Results {
		if len(r.Data) == 0 || r.Status == contract.TaskFailure {
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
