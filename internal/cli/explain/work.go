package explain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/matcher"
)

// writeCandidates writes the candidates in the order of their rank, with the parts of the
// score and the gates that exclude an agent. If subtasks were matched separately, "2.1"
// is the best candidate for subtask 2.
func (p decisionPrinter) writeCandidates(d *contract.Decision) {
	if len(d.Candidates) == 0 {
		p.WriteField("candidates", "none", terminal.Dim)
		return
	}
	rows := make([]terminal.Row, len(d.Candidates))
	rank, part := 0, -1
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if c.Subtask != nil && *c.Subtask != part {
			rank, part = 0, *c.Subtask
		}
		rank++
		number := strconv.Itoa(rank)
		if c.Subtask != nil {
			number = strconv.Itoa(part+1) + "." + number
		}
		role, look := formatRole(c)
		rows[i] = terminal.Row{Cells: []terminal.Cell{
			{Text: number, Style: terminal.Dim},
			{Text: c.AgentID, Style: look},
			{Text: role, Style: look},
			{Text: formatScoreValue(c.Score), Style: terminal.Bold, Right: true},
			{Text: formatScore(c)},
		}}
		for _, g := range c.Gates {
			rows[i].Below = append(rows[i].Below, terminal.Cell{Text: "✗ " + g.Gate + ": " + g.Reason, Style: terminal.Red})
		}
	}
	p.WriteTable("candidates", rows)
	if n := d.CandidatesTotal - len(d.Candidates); n > 0 {
		p.WriteField("", "… and "+strconv.Itoa(n)+" more", terminal.Dim)
	}
}

func formatRole(c *contract.Candidate) (string, terminal.Style) {
	switch {
	case c.Role == contract.RoleChosen:
		return "chosen", terminal.Green
	case c.Role == contract.RoleStandby:
		return "standby", terminal.Cyan
	case c.Eligible:
		return "eligible", terminal.Plain
	}
	return "out", terminal.Dim
}

// formatScore returns every part of the score: "0.50 intent + 0.30 python = 0.80".
func formatScore(c *contract.Candidate) string {
	var b strings.Builder
	add := func(v float64, what string) {
		switch {
		case b.Len() > 0 && v < 0:
			b.WriteString(" − " + formatScoreValue(-v))
		case b.Len() > 0:
			b.WriteString(" + " + formatScoreValue(v))
		default:
			b.WriteString(formatScoreValue(v))
		}
		b.WriteString(" " + what)
	}
	if c.Parts.Intent != 0 {
		add(c.Parts.Intent, "intent")
	}
	if c.Parts.Domains != 0 || len(c.MatchedDomains) > 0 {
		add(c.Parts.Domains, formatDomains(c.MatchedDomains))
	}
	if c.Parts.Constraints != 0 {
		add(c.Parts.Constraints, "constraint")
	}
	if b.Len() == 0 {
		return "nothing matches"
	}
	return b.String() + " = " + formatScoreValue(c.Score)
}

func formatDomains(names []string) string {
	if len(names) == 0 {
		return "domains"
	}
	shown := slices.Clone(names)
	for i, name := range shown {
		if name == contract.AnyDomain {
			shown[i] = "any domain"
		}
	}
	return strings.Join(shown, ", ")
}

func (p decisionPrinter) writeTasks(tasks []contract.TaskReport) {
	rows := make([]terminal.Row, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		mark, look := formatTaskMark(t.Status)
		rows[i] = terminal.Row{Cells: []terminal.Cell{
			{Text: mark, Style: look},
			{Text: t.AgentID},
			{Text: string(t.Status), Style: look},
			{Text: formatAttempts(t.Attempts)},
			{Text: formatMillis(t.LatencyMS), Right: true},
		}}
		if len(tasks) > 1 {
			rows[i].Cells = append(rows[i].Cells, terminal.Cell{Text: t.SubtaskTitle, Style: terminal.Dim})
		}
		for k := range t.FailedOver {
			rows[i].Below = append(rows[i].Below, terminal.Cell{Text: "after " + formatFailover(&t.FailedOver[k]), Style: terminal.Yellow})
		}
		if t.Error != nil {
			rows[i].Below = append(rows[i].Below, terminal.Cell{Text: formatTaskError(t.AgentID, t.Error), Style: terminal.Red})
		}
	}
	p.WriteTable("tasks", rows)
}

func formatTaskMark(s contract.TaskStatus) (string, terminal.Style) {
	switch s {
	case contract.TaskSuccess:
		return "✓", terminal.Green
	case contract.TaskPartial:
		return "~", terminal.Yellow
	case contract.TaskFailure, contract.TaskFailed, contract.TaskCancelled:
	}
	return "✗", terminal.Red
}

func formatAttempts(n int) string {
	if n == 0 {
		return "not called"
	}
	return plaintext.CountNoun(n, "attempt")
}

func formatFailover(t *contract.FailedAttempt) string {
	text := fmt.Sprintf("%s: %s, %s, %s", t.AgentID, t.Status, formatAttempts(t.Attempts), formatMillis(t.LatencyMS))
	if t.Error != nil {
		text += ", " + formatTaskError(t.AgentID, t.Error)
	}
	if len(t.Explanations) > 0 {
		text += ", " + strings.Join(t.Explanations, "; ")
	}
	return text
}

// formatTaskError returns the error of a task of the agent, with the address and the reply
// of the agent, if the caller may see them.
func formatTaskError(agentID string, e *contract.TaskError) string {
	text := string(e.Code) + ": " + e.Detail
	if e.Code == contract.TaskAgentUnavailable && e.Detail == "not called: "+matcher.ReasonDisabled {
		text += "; an operator can enable it: caprouter agents enable " + agentID
	}
	if e.Address != "" {
		text += " (" + e.Address + ")"
	}
	if e.Reply != "" {
		text += ", replied: " + terminal.Printable(e.Reply)
	}
	return text
}

func (p decisionPrinter) writeOmitted(list []contract.Omitted) {
	var texts []string
	for _, o := range list {
		texts = append(texts, fmt.Sprintf("%d. %s (%s): %s", o.Subtask+1, o.Title, FormatIntent(o.Intent, o.Domains), formatOmitted(o.Reason)))
	}
	p.WriteFields("left out", texts, terminal.Yellow)
}

// formatOmitted explains the reasons of router and fallback, and returns others as they
// are.
func formatOmitted(reason string) string {
	var why string
	switch reason {
	case "no_match":
		why = "no agent's score reaches the threshold"
	case "low_confidence":
		why = "the confidence of the classification is too low"
	case "gated":
		why = "a matching agent is excluded by a gate"
	case "topk_reached":
		why = "the request has as many agents as routing.topk allows"
	default:
		return reason
	}
	return reason + ", " + why
}

// answerIndent is the indent of texts of several lines below their label.
const answerIndent = terminal.Indent + terminal.Indent

// writeAnswer writes the text with an indent. A long text is cut.
func (p decisionPrinter) writeAnswer(d *contract.ResponseData) {
	text := strings.Trim(terminal.Printable(d.Answer), "\n")
	if text == "" {
		p.writeData(d.Results)
		return
	}
	lines := strings.Split(terminal.WrapWords(text, p.Width-len(answerIndent)), "\n")
	shown := lines
	if len(lines) > maxAnswerLines+maxAnswerLines/5 { // do not cut only a few lines
		shown = lines[:maxAnswerLines]
	}
	p.WriteBlock("answer", 0, "")
	p.WriteBlock("", len(answerIndent), strings.Join(shown, "\n"))
	if left := lines[len(shown):]; len(left) > 0 {
		p.WriteBlock("", len(answerIndent), p.StyleText(terminal.Dim, "… "+plaintext.CountNoun(len(left), "more line")))
	}
}

// writeData lists the members of results without a text, and describes failures.
func (p decisionPrinter) writeData(results []contract.AgentResult) {
	for i := range results {
		switch r := &results[i]; {
		case r.Status == contract.TaskFailure:
			text := "none; " + r.AgentID + " returned a failure"
			if detail := formatFailureDetail(r); detail != "" {
				text += ": " + terminal.Printable(detail)
			}
			p.WriteField("answer", text, terminal.Plain)
		case len(r.Data) > 0:
			p.WriteField("answer", fmt.Sprintf("no text; %s returned %s", r.AgentID, strings.Join(slices.Sorted(maps.Keys(r.Data)), ", ")), terminal.Plain)
		}
	}
}

// writeProposal writes the ticket of fallback policy C and the suggested agent.
func (p decisionPrinter) writeProposal(d *contract.Proposal, teach string) {
	if d == nil {
		return
	}
	p.WriteField("proposal", terminal.Printable(d.Detail), terminal.Plain)
	if d.TicketID != "" {
		p.WriteField("ticket", fmt.Sprintf("%s, %s", d.TicketID, plaintext.CountNoun(d.Count, "request")), terminal.Plain)
	}
	p.writeNearestReading(d.NearestReading, teach)
	p.WriteFields("needed", d.Requirements, terminal.Plain)
	p.WriteFields("risk", d.Risks, terminal.Plain)
	p.WriteBlock("suggestion", 0, "")
	p.WriteBlock("", len(answerIndent), terminal.Printable(strings.Trim(d.SuggestedYAML, "\n")))
}

// formatNearestReading returns how the reading is taught, or "" if there is none.
func formatNearestReading(r *contract.NearestReading, teach string) string {
	if r == nil || teach == "" {
		return ""
	}
	return fmt.Sprintf("if %s already does this: %s", r.AgentID, teach)
}
