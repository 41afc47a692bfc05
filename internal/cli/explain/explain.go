// Package explain prints decisions and answers for people: how a request was read, which
// agents were considered and why, what the tasks returned, and what the caller can do about an
// incomplete answer. It decides nothing.
package explain

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// Bounds of the text that is printed; --json prints all of it.
const (
	maxPromptLines = 3
	maxAnswerLines = 30
	// maxAcceptedNames bounds the intents and domains that a refusal lists.
	maxAcceptedNames = 12
	// maxEvidenceWidth bounds each text of the evidence, in columns.
	maxEvidenceWidth = 120
)

// Options control how a decision is printed.
type Options struct {
	terminal.Options
	Prompt string // of the caller, "" to print none
	Base   string // URL of the router that answered, "" if it ran in this process
	Teach  string // the command that teaches the prompt, "" to give no such advice
}

// PrintResponse prints a decision and its outcome for a person:
//
//	prompt      Please do a code review of this python module
//	status      accepted: a dry run, nothing was sent
//	reads as    code_review · python, confidence 1.00 (lexical, 80 µs)
//	domains     python named
//	candidates  1  quality_agent  chosen  0.80  0.50 intent + 0.30 python = 0.80
//	chosen      quality_agent
//	timings     classify 80 µs · match 12 µs · total 110 µs
//
// Control characters in texts of callers and agents are replaced.
func PrintResponse(w io.Writer, resp *contract.Response, opts Options) {
	p := decisionPrinter{terminal.NewPrinter(opts.Options)}
	p.writePrompt(opts.Prompt)
	p.writeStatus(resp)
	if d := resp.Decision; d != nil {
		p.writeClassification(&d.Classification)
		p.writeCandidates(d)
		p.writeChoice(d)
	}
	p.writeTasks(resp.Tasks)
	p.writeOmitted(resp.Omitted)
	p.writeClarification(resp, opts.Base)
	p.writeModel("answered by", resp.Data.AnsweredBy)
	p.writeDegraded(&resp.Data)
	p.writeUnsupported(resp.Data.Unsupported, opts.Teach)
	p.writeProposal(resp.Data.Proposal, opts.Teach)
	p.writeAnswer(&resp.Data)
	if d := resp.Decision; d != nil {
		p.writeTimings(d.TimingsMS)
	}
	p.writeReferences(resp)
	fmt.Fprint(w, p.String())
}

// PrintReading prints how a request was read, and the feedback on it, without its outcome.
func PrintReading(w io.Writer, resp *contract.Response, opts Options) {
	p := decisionPrinter{terminal.NewPrinter(opts.Options)}
	p.writePrompt(opts.Prompt)
	p.writeStatus(resp)
	if d := resp.Decision; d != nil {
		p.writeClassification(&d.Classification)
		p.writeCandidates(d)
		p.writeChoice(d)
	}
	label := "feedback"
	for i := range resp.Feedback {
		p.WriteField(label, FormatVerdict(&resp.Feedback[i]), terminal.Plain)
		label = ""
	}
	p.writeReferences(resp)
	fmt.Fprintln(w, p.String())
}

// decisionPrinter lays out the parts of a decision.
type decisionPrinter struct{ *terminal.Printer }

func (p decisionPrinter) writePrompt(text string) {
	text = strings.TrimSpace(terminal.Printable(text))
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	shown := lines[:min(len(lines), maxPromptLines)]
	label := "prompt"
	for _, line := range shown {
		p.WriteBlock(label, p.Margin, p.StyleText(terminal.Bold, terminal.Truncate(strings.TrimRight(line, " "), p.Width-p.Margin)))
		label = ""
	}
	if n := len(lines) - len(shown); n > 0 {
		p.WriteField("", "… "+plaintext.CountNoun(n, "more line"), terminal.Dim)
	}
}

func (p decisionPrinter) writeStatus(resp *contract.Response) {
	style := statusStyle(resp.Status)
	if resp.Data.Degraded {
		style = terminal.Red
	}
	p.WriteField("status", formatStatus(resp), style)
}

func formatStatus(resp *contract.Response) string {
	text := string(resp.Status)
	var notes []string
	if d := resp.Decision; d != nil && d.FallbackUsed != nil {
		notes = append(notes, "fallback policy "+*d.FallbackUsed)
		if resp.Data.Degraded {
			notes[0] += ", but no model has answered"
		}
	}
	switch d := resp.Decision; {
	case !resp.Data.DryRun:
	case d != nil && d.Classification.ModelUse != nil && len(d.Classification.Calls) > 0:
		notes = append(notes, "a dry run, no agent was called")
	default:
		notes = append(notes, "a dry run, nothing was sent")
	}
	if len(notes) > 0 {
		text += ": " + strings.Join(notes, "; ")
	}
	return text
}

func statusStyle(s contract.Status) terminal.Style {
	switch s {
	case contract.StatusAccepted, contract.StatusRunning, contract.StatusCompleted:
		return terminal.Green
	case contract.StatusPartial, contract.StatusClarify, contract.StatusProposed:
		return terminal.Yellow
	case contract.StatusFailed, contract.StatusUnsupported, contract.StatusCancelled:
	}
	return terminal.Red
}

func (p decisionPrinter) writeClassification(c *contract.Classification) {
	how := string(c.Source) + ", " + formatMillis(c.LatencyMS)
	if c.Reason != "" {
		how += ", because " + c.Reason
	}
	p.WriteField("reads as", fmt.Sprintf("%s, confidence %.2f (%s)", FormatIntent(c.Intent, c.Domains), c.Confidence, how), terminal.Plain)
	if text := formatClassification(c); text != "" {
		p.WriteField("", text, terminal.Dim)
	}
	if len(c.Alternatives) > 0 {
		next := make([]string, len(c.Alternatives))
		for i, a := range c.Alternatives {
			next[i] = fmt.Sprintf("%s %.2f", a.Intent, a.Confidence)
		}
		p.WriteField("", "then "+strings.Join(next, ", "), terminal.Dim)
	}
	if c.Tied {
		text := "tied: intents of one agent, so their confidences are added up"
		if c.TiedConfidence > 0 {
			text += fmt.Sprintf(": %.2f", c.TiedConfidence)
		}
		p.WriteField("", text, terminal.Dim)
	}
	if c.RequiredConfidence > 0 {
		confidence, required := plaintext.FormatUnequal(c.Confidence, c.RequiredConfidence)
		p.WriteField("", fmt.Sprintf("%s is below the %s that this registry requires, as learned from its examples", confidence, required), terminal.Dim)
	}
	if text := formatOrigins(c.DomainOrigins); text != "" {
		p.WriteField("domains", text, terminal.Dim)
	}
	for i, s := range c.Subtasks {
		label := ""
		if i == 0 {
			label = "subtasks"
		}
		text := strconv.Itoa(i+1) + ". " + s.Title
		if r := FormatIntent(s.Intent, s.Domains); r != "" {
			if s.Tied {
				r += ", tied"
			}
			text += " (" + r + ")"
		}
		p.WriteField(label, text, terminal.Plain)
		if origins := formatOrigins(s.DomainOrigins); origins != "" {
			p.WriteField("", "   "+origins, terminal.Dim)
		}
	}
	p.writeEvidence(c.Evidence)
	p.writeCascade(c.Cascade)
	p.writeModel("model", c.ModelUse)
}

// writeEvidence writes the texts of the registry that speak for an intent:
//
//	evidence    0.82  code_review    example "look at my pull request", without look
func (p decisionPrinter) writeEvidence(list []contract.Evidence) {
	rows := make([]terminal.Row, len(list))
	for i := range list {
		e := &list[i]
		text := string(e.Kind) + " " + strconv.Quote(terminal.Truncate(terminal.OneLine(e.Text), maxEvidenceWidth))
		if e.RequestText != "" {
			text += " for " + strconv.Quote(terminal.Truncate(terminal.OneLine(e.RequestText), maxEvidenceWidth))
		}
		if len(e.Missing) > 0 {
			text += ", without " + strings.Join(e.Missing, ", ")
		}
		rows[i].Cells = []terminal.Cell{{Text: formatScoreValue(e.Strength), Style: terminal.Bold}, {Text: e.Intent}, {Text: text}}
	}
	if len(rows) > 0 {
		p.WriteTable("evidence", rows)
	}
}

// formatOrigins returns where the domains come from: "azure named · databricks by
// its alias spark".
func formatOrigins(origins []contract.DomainOrigin) string {
	parts := make([]string, len(origins))
	for i, o := range origins {
		parts[i] = o.Domain + " " + formatOrigin(&o)
		if o.ReplacedBy != "" {
			parts[i] += ", replaced by " + o.ReplacedBy
		}
	}
	return strings.Join(parts, " · ")
}

func formatOrigin(o *contract.DomainOrigin) string {
	switch o.Origin {
	case contract.DomainAlias:
		return "meant by " + o.Text
	case contract.DomainLearned:
		return "learned from examples"
	case contract.DomainImplied:
		return "implied by the intent"
	case contract.DomainModel:
		return "by the model"
	case contract.DomainNamed:
	}
	return string(o.Origin)
}

// FormatIntent joins an intent and its domains: "code_review · python, azure".
func FormatIntent(intent string, domains []string) string {
	if len(domains) == 0 {
		return intent
	}
	if intent == "" {
		return strings.Join(domains, ", ")
	}
	return intent + " · " + strings.Join(domains, ", ")
}

func (p decisionPrinter) writeChoice(d *contract.Decision) {
	if t := d.TieBreak; t != nil {
		p.WriteField("tie-break", fmt.Sprintf("%s before %s by %s: %s", t.Winner, t.Over, strings.ReplaceAll(t.Rule, "_", " "), t.Reason), terminal.Plain)
	}
	if len(d.Chosen) > 0 {
		p.WriteField("chosen", strings.Join(d.Chosen, ", "), terminal.Green)
	}
	if len(d.Standby) > 0 {
		p.WriteField("standby", strings.Join(d.Standby, ", "), terminal.Cyan)
	}
}

func (p decisionPrinter) writeUnsupported(u *contract.Unsupported, teach string) {
	if u == nil {
		return
	}
	p.WriteField("because", u.Reason+": "+u.Detail, terminal.Yellow)
	near := make([]string, len(u.Nearest))
	for i := range u.Nearest {
		near[i] = formatNearMiss(&u.Nearest[i])
	}
	p.WriteList("nearest", near, ", ", terminal.Plain)
	p.WriteList("accepted", limitNames(u.AcceptedIntents), ", ", terminal.Plain)
	p.WriteList("domains", limitNames(u.AcceptedDomains), ", ", terminal.Plain)
	var examples []string
	for _, e := range u.Examples {
		examples = append(examples, strconv.Quote(terminal.OneLine(e)))
	}
	p.WriteFields("try", examples, terminal.Cyan)
	p.writeNearestReading(u.NearestReading, teach)
}

func (p decisionPrinter) writeNearestReading(r *contract.NearestReading, teach string) {
	if text := formatNearestReading(r, teach); text != "" {
		p.WriteField("or", text, terminal.Cyan)
	}
}

// limitNames replaces the names beyond the first ones by their number.
func limitNames(names []string) []string {
	n := len(names) - maxAcceptedNames
	if n < 2 { // the number would need as much room as the name
		return names
	}
	return append(slices.Clone(names[:maxAcceptedNames]), fmt.Sprintf("and %d more", n))
}

// formatNearMiss returns why an agent is not eligible: its score, else its gates.
func formatNearMiss(n *contract.NearestMiss) string {
	lacks := "eligible"
	if n.MissingScore > 0 {
		lacks = fmt.Sprintf("%.2f short", n.MissingScore)
	} else if len(n.Gates) > 0 {
		gates := make([]string, len(n.Gates))
		for i, g := range n.Gates {
			gates[i] = g.Gate
		}
		lacks = "excluded by " + strings.Join(gates, " and ")
	}
	return fmt.Sprintf("%s %s (%s)", n.AgentID, formatScoreValue(n.Score), lacks)
}

// writeTimings lists the stages in the order of the pipeline.
func (p decisionPrinter) writeTimings(ms map[string]float64) {
	known := []string{"mask", "classify", "match", "fallback", "dispatch"}
	var parts []string
	add := func(stage string) {
		if v, ok := ms[stage]; ok {
			parts = append(parts, stage+" "+formatMillis(v))
		}
	}
	for _, stage := range known {
		add(stage)
	}
	for _, stage := range slices.Sorted(maps.Keys(ms)) {
		if stage != "total" && !slices.Contains(known, stage) {
			add(stage)
		}
	}
	add("total")
	p.WriteList("timings", parts, " · ", terminal.Dim)
}

// writeReferences writes the ids that identify the request in logs.
func (p decisionPrinter) writeReferences(resp *contract.Response) {
	var refs []string
	if resp.RequestID != "" {
		refs = append(refs, "request "+resp.RequestID)
	}
	if d := resp.Decision; d != nil && d.RegistryVersion != "" {
		refs = append(refs, "registry "+ShortenVersion(d.RegistryVersion))
	}
	p.WriteList("reference", refs, " · ", terminal.Dim)
}

// ShortenVersion returns the version of a registry with the first digits of its hash.
func ShortenVersion(v string) string {
	const algorithm, digits = "sha256:", 12
	if strings.HasPrefix(v, algorithm) && len(v) > len(algorithm)+digits {
		return v[:len(algorithm)+digits]
	}
	return v
}

func formatScoreValue(v float64) string {
	return strings.Replace(fmt.Sprintf("%.2f", v), "-", "−", 1)
}

// formatMillis returns two or three digits: 80 µs, 4.2 ms, 412 ms, 1.41 s.
func formatMillis(ms float64) string {
	switch {
	case ms >= 1000:
		return fmt.Sprintf("%.2f", ms/1000) + terminal.NoBreakSpace + "s"
	case ms >= 10:
		return fmt.Sprintf("%.0f", ms) + terminal.NoBreakSpace + "ms"
	case ms >= 1:
		return fmt.Sprintf("%.1f", ms) + terminal.NoBreakSpace + "ms"
	}
	return fmt.Sprintf("%.0f", ms*1000) + terminal.NoBreakSpace + "µs"
}
