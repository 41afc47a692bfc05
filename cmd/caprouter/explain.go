package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/caprouter/caprouter/contract"
)

// Bounds of what is printed of a decision; --json has all of it.
const (
	plainWidth  = 100 // columns where there is no terminal to ask
	leastWidth  = 50
	mostWidth   = 120 // longer lines are hard to read
	promptLines = 3
	answerLines = 30
)

// printOpts says how a decision is printed.
type printOpts struct {
	prompt string
	base   string // URL of the router that was asked; "" = the one in this process
	width  int    // columns
	colour bool   // ANSI colours
}

// printOptions suits them to what out is: colours and the real width only on a
// terminal, and no colours where NO_COLOR is set (no-color.org).
func printOptions(out io.Writer, prompt string) printOpts {
	opts := printOpts{prompt: prompt, width: plainWidth}
	f, ok := terminal(out)
	if !ok {
		return opts
	}
	opts.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		opts.width = min(max(columns, leastWidth), mostWidth)
	}
	return opts
}

// terminal returns out as the terminal it is.
func terminal(out io.Writer) (*os.File, bool) {
	f, ok := out.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// printResponse prints a decision and its outcome for a person:
//
//	prompt      Please do a code review of this python module
//	status      accepted: a dry run, nothing was sent
//	reads as    code_review · python, confidence 1.00 (lexical, 80 µs)
//	candidates  1  quality_agent  chosen  0.80  0.50 intent + 0.30 python = 0.80
//	chosen      quality_agent
//	timings     classify 80 µs · match 12 µs · total 110 µs
//
// Text of callers and agents is shown without its control characters.
func printResponse(w io.Writer, resp *contract.Response, opts printOpts) {
	p := newPage(opts)
	p.prompt(opts.prompt)
	p.field("status", statusText(resp), statusStyle(resp.Status))
	if d := resp.Decision; d != nil {
		p.classification(&d.Classification)
		p.candidates(d)
		p.choice(d)
	}
	p.tasks(resp.Tasks)
	p.omitted(resp.Omitted)
	p.clarification(resp, opts.base)
	p.model("answered by", resp.Data.AnsweredBy)
	p.degraded(&resp.Data)
	p.unsupported(resp.Data.Unsupported)
	p.proposal(resp.Data.Proposal)
	p.answer(&resp.Data)
	if d := resp.Decision; d != nil {
		p.timings(d.TimingsMS)
	}
	p.references(resp)
	fmt.Fprint(w, p.String())
}

func (p *page) prompt(text string) {
	text = strings.TrimSpace(printable(text))
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	shown := lines[:min(len(lines), promptLines)]
	for i, line := range shown {
		label := ""
		if i == 0 {
			label = "prompt"
		}
		p.line(label, cell{text: cut(strings.TrimRight(line, " "), p.room()), style: bold})
	}
	if n := len(lines) - len(shown); n > 0 {
		p.line("", cell{text: "… " + count(n, "more line"), style: dim})
	}
}

func statusText(resp *contract.Response) string {
	text := string(resp.Status)
	var notes []string
	if d := resp.Decision; d != nil && d.FallbackUsed != nil {
		notes = append(notes, "fallback policy "+*d.FallbackUsed)
	}
	switch d := resp.Decision; {
	case !resp.Data.DryRun:
	case d != nil && d.Classification.ModelUse != nil && len(d.Classification.Calls) > 0:
		notes = append(notes, "a dry run, no agent was asked")
	default:
		notes = append(notes, "a dry run, nothing was sent")
	}
	if len(notes) > 0 {
		text += ": " + strings.Join(notes, "; ")
	}
	return text
}

func statusStyle(s contract.Status) style {
	switch s {
	case contract.StatusAccepted, contract.StatusRunning, contract.StatusCompleted:
		return green
	case contract.StatusPartial, contract.StatusClarify, contract.StatusProposed:
		return yellow
	case contract.StatusFailed, contract.StatusUnsupported, contract.StatusCancelled:
	}
	return red
}

func (p *page) classification(c *contract.Classification) {
	how := string(c.Source) + ", " + millis(c.LatencyMS)
	if c.Reason != "" {
		how += ", because " + c.Reason
	}
	p.field("reads as", fmt.Sprintf("%s, confidence %.2f (%s)", reading(c.Intent, c.Domains), c.Confidence, how), none)
	if text := classifiedText(c); text != "" {
		p.field("", text, dim)
	}
	if len(c.Alternatives) > 0 {
		next := make([]string, len(c.Alternatives))
		for i, a := range c.Alternatives {
			next[i] = fmt.Sprintf("%s %.2f", a.Intent, a.Confidence)
		}
		p.field("", "then "+strings.Join(next, ", "), dim)
	}
	for i, s := range c.Subtasks {
		label := ""
		if i == 0 {
			label = "subtasks"
		}
		text := strconv.Itoa(i+1) + ". " + s.Title
		if r := reading(s.Intent, s.Domains); r != "" {
			text += " (" + r + ")"
		}
		p.field(label, text, none)
	}
	p.cascade(c.Cascade)
	p.model("model", c.ModelUse)
}

// reading joins an intent and its domains: "code_review · python, azure".
func reading(intent string, domains []string) string {
	if len(domains) == 0 {
		return intent
	}
	if intent == "" {
		return strings.Join(domains, ", ")
	}
	return intent + " · " + strings.Join(domains, ", ")
}

// choice is who was chosen, and what put them first.
func (p *page) choice(d *contract.Decision) {
	if t := d.TieBreak; t != nil {
		p.field("tie-break", fmt.Sprintf("%s before %s by %s: %s", t.Winner, t.Over, strings.ReplaceAll(t.Rule, "_", " "), t.Reason), none)
	}
	if len(d.Chosen) > 0 {
		p.field("chosen", strings.Join(d.Chosen, ", "), green)
	}
	if len(d.Standby) > 0 {
		p.field("standby", strings.Join(d.Standby, ", "), cyan)
	}
}

func (p *page) unsupported(u *contract.Unsupported) {
	if u == nil {
		return
	}
	p.field("because", u.Reason+": "+u.Detail, yellow)
	near := make([]string, len(u.Nearest))
	for i := range u.Nearest {
		near[i] = nearMiss(&u.Nearest[i])
	}
	p.list("nearest", near, ",", none)
	p.list("accepted", u.AcceptedIntents, ",", none)
	p.list("domains", u.AcceptedDomains, ",", none)
	for i, e := range u.Examples {
		label := ""
		if i == 0 {
			label = "try"
		}
		p.field(label, strconv.Quote(oneLine(e)), cyan)
	}
}

// nearMiss says what an agent lacks: score first, else the gates.
func nearMiss(n *contract.NearestMiss) string {
	lacks := "eligible"
	if n.MissingScore > 0 {
		lacks = fmt.Sprintf("%.2f short", n.MissingScore)
	} else if len(n.Gates) > 0 {
		gates := make([]string, len(n.Gates))
		for i, g := range n.Gates {
			gates[i] = g.Gate
		}
		lacks = "kept out by " + strings.Join(gates, " and ")
	}
	return fmt.Sprintf("%s %s (%s)", n.AgentID, decimal(n.Score), lacks)
}

// timings lists the stages in the order a request goes through them.
func (p *page) timings(ms map[string]float64) {
	known := []string{"mask", "classify", "match", "fallback", "dispatch"}
	var parts []string
	add := func(stage string) {
		if v, ok := ms[stage]; ok {
			parts = append(parts, stage+" "+millis(v))
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
	p.list("timings", parts, " ·", dim)
}

// references are what the logs name this request by.
func (p *page) references(resp *contract.Response) {
	var refs []string
	if resp.RequestID != "" {
		refs = append(refs, "request "+resp.RequestID)
	}
	if d := resp.Decision; d != nil && d.RegistryVersion != "" {
		refs = append(refs, "registry "+shortVersion(d.RegistryVersion))
	}
	p.list("reference", refs, " ·", dim)
}

// shortVersion keeps as much of a hash as people compare.
func shortVersion(v string) string {
	const algorithm, digits = "sha256:", 12
	if strings.HasPrefix(v, algorithm) && len(v) > len(algorithm)+digits {
		return v[:len(algorithm)+digits]
	}
	return v
}

// decimal is a score as the arithmetic writes it.
func decimal(v float64) string { return strings.Replace(fmt.Sprintf("%.2f", v), "-", "−", 1) }

// millis shows two or three digits: 80 µs, 4.2 ms, 412 ms, 1.41 s.
func millis(ms float64) string {
	switch {
	case ms >= 1000:
		return fmt.Sprintf("%.2f s", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 1:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f µs", ms*1000)
}
