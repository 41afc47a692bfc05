package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
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

// explainOptions control how a decision is printed.
type explainOptions struct {
	outputOptions
	prompt string
	base   string // URL of the router that answered, "" if it ran in this process
	teach  string // the command that teaches the prompt, "" to give no such advice
}

// printResponse prints a decision and its outcome for a person:
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
func printResponse(w io.Writer, resp *contract.Response, opts explainOptions) {
	p := decisionPrinter{newPrinter(opts.outputOptions)}
	p.writePrompt(opts.prompt)
	p.writeStatus(resp)
	if d := resp.Decision; d != nil {
		p.writeClassification(&d.Classification)
		p.writeCandidates(d)
		p.writeChoice(d)
	}
	p.writeTasks(resp.Tasks)
	p.writeOmitted(resp.Omitted)
	p.writeClarification(resp, opts.base)
	p.writeModel("answered by", resp.Data.AnsweredBy)
	p.writeDegraded(&resp.Data)
	p.writeUnsupported(resp.Data.Unsupported, opts.teach)
	p.writeProposal(resp.Data.Proposal, opts.teach)
	p.writeAnswer(&resp.Data)
	if d := resp.Decision; d != nil {
		p.writeTimings(d.TimingsMS)
	}
	p.writeReferences(resp)
	fmt.Fprint(w, p.String())
}

// decisionPrinter lays out the parts of a decision.
type decisionPrinter struct{ *printer }

func (p decisionPrinter) writePrompt(text string) {
	text = strings.TrimSpace(printable(text))
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	shown := lines[:min(len(lines), maxPromptLines)]
	label := "prompt"
	for _, line := range shown {
		p.writeBlock(label, p.margin, p.styleText(bold, truncate(strings.TrimRight(line, " "), p.width-p.margin)))
		label = ""
	}
	if n := len(lines) - len(shown); n > 0 {
		p.writeField("", "… "+plaintext.CountNoun(n, "more line"), dim)
	}
}

func (p decisionPrinter) writeStatus(resp *contract.Response) {
	style := statusStyle(resp.Status)
	if resp.Data.Degraded {
		style = red
	}
	p.writeField("status", formatStatus(resp), style)
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

func statusStyle(s contract.Status) textStyle {
	switch s {
	case contract.StatusAccepted, contract.StatusRunning, contract.StatusCompleted:
		return green
	case contract.StatusPartial, contract.StatusClarify, contract.StatusProposed:
		return yellow
	case contract.StatusFailed, contract.StatusUnsupported, contract.StatusCancelled:
	}
	return red
}

func (p decisionPrinter) writeClassification(c *contract.Classification) {
	how := string(c.Source) + ", " + formatMillis(c.LatencyMS)
	if c.Reason != "" {
		how += ", because " + c.Reason
	}
	p.writeField("reads as", fmt.Sprintf("%s, confidence %.2f (%s)", formatIntent(c.Intent, c.Domains), c.Confidence, how), plain)
	if text := formatClassification(c); text != "" {
		p.writeField("", text, dim)
	}
	if len(c.Alternatives) > 0 {
		next := make([]string, len(c.Alternatives))
		for i, a := range c.Alternatives {
			next[i] = fmt.Sprintf("%s %.2f", a.Intent, a.Confidence)
		}
		p.writeField("", "then "+strings.Join(next, ", "), dim)
	}
	if c.Tied {
		p.writeField("", "tied: one agent serves several of these intents, so their confidences are added up", dim)
	}
	if text := formatOrigins(c.DomainOrigins); text != "" {
		p.writeField("domains", text, dim)
	}
	for i, s := range c.Subtasks {
		label := ""
		if i == 0 {
			label = "subtasks"
		}
		text := strconv.Itoa(i+1) + ". " + s.Title
		if r := formatIntent(s.Intent, s.Domains); r != "" {
			if s.Tied {
				r += ", tied"
			}
			text += " (" + r + ")"
		}
		p.writeField(label, text, plain)
		if origins := formatOrigins(s.DomainOrigins); origins != "" {
			p.writeField("", "   "+origins, dim)
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
	rows := make([]tableRow, len(list))
	for i := range list {
		e := &list[i]
		text := string(e.Kind) + " " + strconv.Quote(truncate(oneLine(e.Text), maxEvidenceWidth))
		if len(e.Missing) > 0 {
			text += ", without " + strings.Join(e.Missing, ", ")
		}
		rows[i].cells = []tableCell{{text: formatScoreValue(e.Strength), style: bold}, {text: e.Intent}, {text: text}}
	}
	if len(rows) > 0 {
		p.writeTable("evidence", rows)
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

// formatIntent joins an intent and its domains: "code_review · python, azure".
func formatIntent(intent string, domains []string) string {
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
		p.writeField("tie-break", fmt.Sprintf("%s before %s by %s: %s", t.Winner, t.Over, strings.ReplaceAll(t.Rule, "_", " "), t.Reason), plain)
	}
	if len(d.Chosen) > 0 {
		p.writeField("chosen", strings.Join(d.Chosen, ", "), green)
	}
	if len(d.Standby) > 0 {
		p.writeField("standby", strings.Join(d.Standby, ", "), cyan)
	}
}

func (p decisionPrinter) writeUnsupported(u *contract.Unsupported, teach string) {
	if u == nil {
		return
	}
	p.writeField("because", u.Reason+": "+u.Detail, yellow)
	near := make([]string, len(u.Nearest))
	for i := range u.Nearest {
		near[i] = formatNearMiss(&u.Nearest[i])
	}
	p.writeList("nearest", near, ", ", plain)
	p.writeList("accepted", limitNames(u.AcceptedIntents), ", ", plain)
	p.writeList("domains", limitNames(u.AcceptedDomains), ", ", plain)
	var examples []string
	for _, e := range u.Examples {
		examples = append(examples, strconv.Quote(oneLine(e)))
	}
	p.writeFields("try", examples, cyan)
	p.writeNearestReading(u.NearestReading, teach)
}

func (p decisionPrinter) writeNearestReading(r *contract.NearestReading, teach string) {
	if text := formatNearestReading(r, teach); text != "" {
		p.writeField("or", text, cyan)
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
	p.writeList("timings", parts, " · ", dim)
}

// writeReferences writes the ids that identify the request in logs.
func (p decisionPrinter) writeReferences(resp *contract.Response) {
	var refs []string
	if resp.RequestID != "" {
		refs = append(refs, "request "+resp.RequestID)
	}
	if d := resp.Decision; d != nil && d.RegistryVersion != "" {
		refs = append(refs, "registry "+shortenVersion(d.RegistryVersion))
	}
	p.writeList("reference", refs, " · ", dim)
}

func shortenVersion(v string) string {
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
		return fmt.Sprintf("%.2f", ms/1000) + noBreakSpace + "s"
	case ms >= 10:
		return fmt.Sprintf("%.0f", ms) + noBreakSpace + "ms"
	case ms >= 1:
		return fmt.Sprintf("%.1f", ms) + noBreakSpace + "ms"
	}
	return fmt.Sprintf("%.0f", ms*1000) + noBreakSpace + "µs"
}
