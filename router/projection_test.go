package router_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// projectResponse prints the facts of a response, one on each line. Missing facts, for example
// subtasks, have no line. Ids and times are omitted: the cases with the whole response cover them.
func projectResponse(resp *contract.Response) string {
	p := &projection{}
	d, data := resp.Decision, &resp.Data
	p.add("status", "%s%s", resp.Status, textIf(data.DryRun, " (dry run)"))
	p.add("mode", "%s", data.Mode)
	p.addClassification("classification", &d.Classification)
	p.addCandidates(d)
	p.add("chosen", "%s", list(d.Chosen))
	p.add("standby", "%s", list(d.Standby))
	if tie := d.TieBreak; tie != nil {
		p.add("tie break", "%s before %s by %s: %s", tie.Winner, tie.Over, tie.Rule, tie.Reason)
	}
	if d.FallbackUsed != nil {
		p.add("fallback", "%s", *d.FallbackUsed)
	}
	for i := range resp.Tasks {
		p.addTask(&resp.Tasks[i])
	}
	for _, o := range resp.Omitted {
		p.add("omitted", "subtask %d, %s %v %q: %s", o.Subtask, o.Intent, o.Domains, o.Title, o.Reason)
	}
	p.addData(data, &d.Classification)
	return p.String()
}

// projection is a text of lines with a label and a fact.
type projection struct{ strings.Builder }

func (p *projection) add(label, format string, args ...any) {
	fmt.Fprintf(&p.Builder, "%s: %s\n", label, fmt.Sprintf(format, args...))
}

func (p *projection) addClassification(label string, c *contract.Classification) {
	p.add(label, "%s %v, confidence %v, source %s%s", c.Intent, c.Domains, c.Confidence, c.Source, textIf(c.Reason != "", ", reason "+c.Reason)+textIf(c.Tied, ", tied"))
	p.addModelUse(c.ModelUse)
	for i, s := range c.Subtasks {
		p.add("subtask", "%d, %s %v %q%s%s", i, s.Intent, s.Domains, s.Title, textIf(s.Reason != "", ": "+s.Reason), textIf(s.Tied, ", tied"))
	}
	for _, a := range c.Alternatives {
		p.add("alternative", "%s, confidence %v", a.Intent, a.Confidence)
	}
}

func (p *projection) addModelUse(use *contract.ModelUse) {
	if use == nil {
		return
	}
	for _, call := range use.Calls {
		p.add("model call", "%s, %s, %s %s", call.Purpose, call.Outcome, use.Provider, use.Model)
	}
}

func (p *projection) addCandidates(d *contract.Decision) {
	for i := range d.Candidates {
		c := &d.Candidates[i]
		of := ""
		if c.Subtask != nil {
			of = fmt.Sprintf(" of subtask %d", *c.Subtask)
		}
		p.add("candidate", "%s, %s%s, score %v = intent %v + domains %v + constraints %v, matched %v%s",
			c.AgentID, c.Role, of, c.Score, c.Parts.Intent, c.Parts.Domains, c.Parts.Constraints, c.MatchedDomains, failedGates(c.Gates))
		if c.Eligible != (len(c.Gates) == 0) {
			p.add("candidate", "%s, eligible %v", c.AgentID, c.Eligible)
		}
	}
	if d.CandidatesTotal != len(d.Candidates) {
		p.add("candidates total", "%d", d.CandidatesTotal)
	}
	for i := range d.Hidden {
		p.add("hidden", "%s%s", d.Hidden[i].AgentID, failedGates(d.Hidden[i].Gates))
	}
}

func (p *projection) addTask(t *contract.TaskReport) {
	for _, f := range t.FailedOver {
		p.add("failed over", "%s, %s, attempts %d%s%s", f.AgentID, f.Status, f.Attempts, taskError(f.Error),
			textIf(len(f.Explanations) > 0, ", explanations "+list(f.Explanations)))
	}
	p.add("task", "%s, %s, attempts %d%s%s", t.AgentID, t.Status, t.Attempts,
		textIf(t.SubtaskTitle != "", fmt.Sprintf(", %q", t.SubtaskTitle)), taskError(t.Error))
}

func (p *projection) addData(data *contract.ResponseData, decided *contract.Classification) {
	if c := data.Classification; c != nil && !reflect.DeepEqual(c, decided) {
		p.addClassification("data classification", c)
	}
	if data.Degraded {
		p.add("degraded", "%s", data.DegradedReason)
	}
	p.addModelUse(data.AnsweredBy)
	if data.Question != "" {
		p.add("question", "%s: %q", data.Because, data.Question)
	}
	for _, o := range data.Options {
		p.add("option", "%s, %s %v %q", o.ID, o.Intent, o.Domains, o.Label)
	}
	if c := data.Proposal; c != nil {
		p.add("proposal", "count %d, joined %v: %s", c.Count, c.Joined, c.Detail)
	}
	if u := data.Unsupported; u != nil {
		p.add("reason", "%s: %s", u.Reason, u.Detail)
		for _, n := range u.Nearest {
			p.add("nearest", "%s, score %v, missing %v%s", n.AgentID, n.Score, n.MissingScore, failedGates(n.Gates))
		}
		p.add("accepted intents", "%s", list(u.AcceptedIntents))
		p.add("accepted domains", "%s", list(u.AcceptedDomains))
		p.add("examples", "%q", u.Examples)
	}
	for i := range data.Results {
		if r := &data.Results[i]; len(r.Explanations) > 0 {
			p.add("explanations", "%s, %s", r.AgentID, list(r.Explanations))
		}
	}
	if data.Answer != "" {
		p.add("answer", "%q", data.Answer)
	}
}

func failedGates(gates []contract.Gate) string {
	failed := make([]string, len(gates))
	for i, g := range gates {
		failed[i] = g.Gate + " (" + g.Reason + ")"
	}
	return textIf(len(gates) > 0, ", failed "+strings.Join(failed, ", "))
}

func taskError(e *contract.TaskError) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf(", %s: %s", e.Code, e.Detail)
}

func textIf(present bool, text string) string {
	if !present {
		return ""
	}
	return text
}

func list(items []string) string {
	if len(items) == 0 {
		return "-"
	}
	return strings.Join(items, ", ")
}

// wholeResponse prints a response as JSON, with its times at zero and its random ids
// replaced.
func wholeResponse(t *testing.T, resp *contract.Response) string {
	t.Helper()
	resp.Decision.Classification.LatencyMS = 0
	if use := resp.Data.AnsweredBy; use != nil {
		for i := range use.Calls {
			use.Calls[i].LatencyMS = 0
		}
	}
	for stage := range resp.Decision.TimingsMS {
		resp.Decision.TimingsMS[stage] = 0
	}
	for i := range resp.Tasks {
		resp.Tasks[i].LatencyMS, resp.Tasks[i].TaskID = 0, "task"
	}
	resp.Decision.RegistryVersion, resp.Decision.FleetRevision = "sha256:…", ""
	data, err := json.MarshalIndent(resp, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}
