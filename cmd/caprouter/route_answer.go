package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// printAnswer prints what the caller asked for, and on errOut what is missing.
func printAnswer(out, errOut io.Writer, resp *contract.Response) error {
	if resp.Data.DryRun && resp.Decision != nil && len(resp.Decision.Chosen) > 0 {
		fmt.Fprintf(out, "%s: %s\n", resp.Status, strings.Join(resp.Decision.Chosen, ", "))
	}
	if err := printText(out, &resp.Data); err != nil {
		return err
	}
	if u := resp.Data.Unsupported; u != nil {
		complain(errOut, fmt.Sprintf("unsupported (%s): %s", u.Reason, u.Detail))
	}
	for _, t := range resp.Tasks {
		switch {
		case t.Error != nil:
			complain(errOut, t.AgentID+": "+taskError(t.Error))
		case t.Status == contract.TaskFailure:
			complain(errOut, t.AgentID+": the agent says that it failed")
		}
	}
	for _, o := range resp.Omitted {
		complain(errOut, fmt.Sprintf("left out: %s: %s", o.Title, omittedText(o.Reason)))
	}
	return nil
}

// printText prints the answer, or what the agents returned instead of text, as
// it is; on a terminal without what would control the terminal.
func printText(out io.Writer, d *contract.ResponseData) error {
	safe := func(s string) string { return s }
	if _, ok := terminal(out); ok {
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
