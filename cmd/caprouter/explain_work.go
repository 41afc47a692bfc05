package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// candidates is the table of who was looked at, in rank order, with the score's
// arithmetic and, below an agent that is out, what kept it out. Where subtasks
// were matched one by one, "2.1" is the best for subtask 2.
func (p *page) candidates(d *contract.Decision) {
	if len(d.Candidates) == 0 {
		p.field("candidates", "none", dim)
		return
	}
	rows := make([]row, len(d.Candidates))
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
		role, look := roleText(c)
		rows[i] = row{cells: []cell{
			{text: number, style: dim},
			{text: c.AgentID, style: look},
			{text: role, style: look},
			{text: decimal(c.Score), style: bold, right: true},
			{text: arithmetic(c)},
		}}
		for _, g := range c.Gates {
			rows[i].below = append(rows[i].below, cell{text: "✗ " + g.Gate + ": " + g.Reason, style: red})
		}
	}
	p.table("candidates", rows)
	if n := d.CandidatesTotal - len(d.Candidates); n > 0 {
		p.field("", "… and "+strconv.Itoa(n)+" more", dim)
	}
}

func roleText(c *contract.Candidate) (string, style) {
	switch {
	case c.Role == contract.RoleChosen:
		return "chosen", green
	case c.Role == contract.RoleStandby:
		return "standby", cyan
	case c.Eligible:
		return "eligible", none
	}
	return "out", dim
}

// arithmetic shows every addend: "0.50 intent + 0.30 python = 0.80".
func arithmetic(c *contract.Candidate) string {
	var b strings.Builder
	add := func(v float64, what string) {
		switch {
		case b.Len() > 0 && v < 0:
			b.WriteString(" − " + decimal(-v))
		case b.Len() > 0:
			b.WriteString(" + " + decimal(v))
		default:
			b.WriteString(decimal(v))
		}
		b.WriteString(" " + what)
	}
	if c.Parts.Intent != 0 {
		add(c.Parts.Intent, "intent")
	}
	if c.Parts.Domains != 0 || len(c.MatchedDomains) > 0 {
		add(c.Parts.Domains, matchedDomains(c.MatchedDomains))
	}
	if c.Parts.Constraints != 0 {
		add(c.Parts.Constraints, "constraint")
	}
	if b.Len() == 0 {
		return "nothing matches"
	}
	return b.String() + " = " + decimal(c.Score)
}

func matchedDomains(names []string) string {
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

func (p *page) tasks(tasks []contract.TaskReport) {
	rows := make([]row, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		mark, look := taskMark(t.Status)
		rows[i] = row{cells: []cell{
			{text: mark, style: look},
			{text: t.AgentID},
			{text: string(t.Status), style: look},
			{text: attempts(t.Attempts)},
			{text: millis(t.LatencyMS), right: true},
		}}
		if len(tasks) > 1 {
			rows[i].cells = append(rows[i].cells, cell{text: t.SubtaskTitle, style: dim})
		}
		for k := range t.FailedOver {
			rows[i].below = append(rows[i].below, cell{text: "after " + failedOver(&t.FailedOver[k]), style: yellow})
		}
		if t.Error != nil {
			rows[i].below = append(rows[i].below, cell{text: taskError(t.Error), style: red})
		}
	}
	p.table("tasks", rows)
}

func taskMark(s contract.TaskStatus) (string, style) {
	switch s {
	case contract.TaskSuccess:
		return "✓", green
	case contract.TaskPartial:
		return "~", yellow
	case contract.TaskFailure, contract.TaskFailed, contract.TaskCancelled:
	}
	return "✗", red
}

func attempts(n int) string {
	if n == 0 {
		return "not called"
	}
	return count(n, "attempt")
}

func failedOver(t *contract.FailedAttempt) string {
	text := fmt.Sprintf("%s: %s, %s, %s", t.AgentID, t.Status, attempts(t.Attempts), millis(t.LatencyMS))
	if t.Error != nil {
		text += ", " + taskError(t.Error)
	}
	if len(t.Explanations) > 0 {
		text += ", " + strings.Join(t.Explanations, "; ")
	}
	return text
}

func taskError(e *contract.TaskError) string { return string(e.Code) + ": " + e.Detail }

func (p *page) omitted(list []contract.Omitted) {
	for i, o := range list {
		label := ""
		if i == 0 {
			label = "left out"
		}
		p.field(label, fmt.Sprintf("%d. %s (%s): %s", o.Subtask+1, o.Title, reading(o.Intent, o.Domains), omittedText(o.Reason)), yellow)
	}
}

// omittedText explains the reasons of router and fallback; others stand alone.
func omittedText(reason string) string {
	var why string
	switch reason {
	case "no_match":
		why = "no agent's score reaches the threshold"
	case "low_confidence":
		why = "the classification is not sure enough"
	case "gated":
		why = "an agent fits but for a condition it sets"
	case "topk_reached":
		why = "the request has as many agents as routing.topk allows"
	default:
		return reason
	}
	return reason + ", " + why
}

// answer shows the text as it is, indented and, when it is long, its beginning.
func (p *page) answer(d *contract.ResponseData) {
	text := strings.Trim(printable(d.Answer), "\n")
	if text == "" {
		p.data(d.Results)
		return
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrapBelow(strings.TrimRight(line, " "), p.width-len(answerIndent))...)
	}
	shown := lines
	if len(lines) > answerLines+answerLines/5 { // to leave out two lines would be silly
		shown = lines[:answerLines]
	}
	p.line("answer", cell{})
	for _, line := range shown {
		p.raw(answerIndent, line)
	}
	if left := lines[len(shown):]; len(left) > 0 {
		note := fmt.Sprintf("… %s (%s)", count(len(left), "more line"), size(left))
		p.raw(answerIndent, p.paint(dim, note))
	}
}

// size is how much text the lines hold.
func size(lines []string) string {
	n := 0
	for _, line := range lines {
		n += len(line) + 1
	}
	if n < 10_000 {
		return count(n, "byte")
	}
	return fmt.Sprintf("%d kB", n/1000)
}

// data names what came back instead of text.
func (p *page) data(results []contract.AgentResult) {
	for _, r := range results {
		if len(r.Data) > 0 {
			p.field("answer", fmt.Sprintf("no text; %s returned %s", r.AgentID, strings.Join(slices.Sorted(maps.Keys(r.Data)), ", ")), none)
		}
	}
}
