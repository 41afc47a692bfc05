package goldenreport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// FormatCandidates returns the candidates, the counts, and what was left out. decisions is the
// number of decisions that were read, at most limit.
func FormatCandidates(r *golden.CandidateReport, decisions, limit int, opts terminal.Options) string {
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range r.Candidates {
		c := &r.Candidates[i]
		rows = append(rows, terminal.Row{
			Cells: []terminal.Cell{{Text: strconv.Itoa(i + 1), Right: true}, {Text: c.Agent}, {Text: c.Intent}, {Text: string(c.Origin)}},
			Below: []terminal.Cell{
				{Text: terminal.OneLine(c.Text)},
				{Text: "without a model: " + formatActual(&c.Without), Style: terminal.Dim},
			},
		})
	}
	if len(rows) > 0 {
		p.WriteRecords([]string{"", "AGENT", "INTENT", "KNOWN BY"}, rows)
		p.WriteByte('\n')
	}
	p.Margin = 0
	n := len(r.Candidates)
	p.WriteParagraph(terminal.Plain, fmt.Sprintf("the right agent is known of %s in %s", plaintext.CountNoun(r.All.Texts, "text"), plaintext.CountNoun(decisions, "decision")))
	switch {
	case n > 0:
		p.WriteParagraph(terminal.Plain, fmt.Sprintf("routed to it without a model: %d now, %d with %s", r.All.Before, r.All.After, plaintext.CountNoun(n, "new example")))
		if r.Others.Texts > 0 {
			p.WriteParagraph(terminal.Plain, fmt.Sprintf("of the other %s: %d now, %d then", plaintext.CountNoun(r.Others.Texts, "text"), r.Others.Before, r.Others.After))
		}
	case r.All.Texts > 0:
		p.WriteParagraph(terminal.Plain, fmt.Sprintf("routed to it without a model: %d", r.All.Before))
	}
	if r.NoGain > 0 {
		p.WriteParagraph(terminal.Plain, plaintext.CountNoun(r.NoGain, "text")+" would send as many others elsewhere as an example: check the agents of both")
	}
	for _, reason := range slices.Sorted(maps.Keys(r.LeftOut)) {
		p.WriteParagraph(terminal.Plain, fmt.Sprintf("left out %s: %s", plaintext.CountNoun(r.LeftOut[reason], "request"), describeLeftOut(reason)))
	}
	if r.More {
		p.WriteParagraph(terminal.Yellow, "there may be more: write these, or choose a higher --limit")
	}
	if decisions == limit {
		p.WriteParagraph(terminal.Yellow, fmt.Sprintf("only the newest %d decisions were read", decisions))
	}
	return p.String()
}

// formatActual returns how a request was routed: "code_review 0.83 → a question to the caller".
func formatActual(a *golden.Actual) string {
	to := cmp.Or(strings.Join(a.Agents, ", "), string(a.Outcome))
	if a.Outcome == golden.Clarify {
		to = "a question to the caller"
	}
	return fmt.Sprintf("%s %.2f → %s", a.Intent, a.Confidence, to)
}

// describeLeftOut returns why requests are no candidates.
func describeLeftOut(reason string) string {
	switch reason {
	case golden.LeftMasked:
		return "the text is masked (teach asks for invented values)"
	case golden.LeftNone:
		return "the feedback expects no agent (no example may send it to one)"
	case golden.LeftSeveral:
		return "the feedback expects several agents"
	case golden.LeftUndeclared:
		return "the registry file does not declare the agent, or not with this intent"
	case golden.LeftIntent:
		return "none of the intents of the agent was near (teach asks for one)"
	case golden.LeftInvalid:
		return "the registry does not accept the text as an example, for example because it is too long"
	}
	return reason
}
