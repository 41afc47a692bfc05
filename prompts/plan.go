package prompts

import "github.com/caprouter/caprouter/contract"

// Versions of the prompts of orchestrations; see RouterVersion.
const (
	PlannerVersion  = "planner/1" // also of the repair prompt
	VerifierVersion = "verifier/1"
)

// Limits of the prompts of orchestrations.
const (
	maxToolText    = 600      // characters of a description
	maxToolSchema  = 8 << 10  // bytes; a larger schema is not shown
	maxOutputs     = 40       // the last ones
	maxOutputText  = 4000     // characters of an output
	maxFacts       = 16 << 10 // bytes
	maxProblems    = 20
	maxPlanExcerpt = 32 << 10 // bytes
	maxToolName    = 400
)

// Tool is a tool that a plan may use.
type Tool struct {
	Action      string
	Description string
	Schema      string // JSON Schema of the arguments; "" = none
}

// StepOutput is the output of a step.
type StepOutput struct{ Step, Action, Status, Text string }

// PlannerData is the data of the planner prompt.
type PlannerData struct {
	Goal         string
	Facts        string // JSON of the caller
	Tools        []Tool // in the order they are shown
	Omitted      int    // tools that are not shown
	MaxSteps     int
	NeedCriteria bool

	Previous string // JSON of the plan that failed; "" = none
	Outputs  []StepOutput
	Problems []string
}

// Render renders the planner prompt.
func (p *PlannerData) Render() Messages {
	view := plannerView{
		Goal: quoteJSON(truncateBytes(p.Goal, contract.MaxGoalBytes)), Omitted: p.Omitted, MaxSteps: p.MaxSteps, NeedCriteria: p.NeedCriteria,
		Outputs: outputViews(p.Outputs),
	}
	if p.Facts != "" {
		view.Facts = quoteJSON(truncateBytes(p.Facts, maxFacts))
	}
	if p.Previous != "" {
		view.Previous = quoteJSON(truncateBytes(p.Previous, maxPlanExcerpt))
	}
	for _, t := range p.Tools {
		shown := toolView{Action: quoteJSON(truncateRunes(t.Action, maxToolName)), Description: quoteJSON(cleanText(t.Description, maxToolText))}
		if t.Schema != "" && len(t.Schema) <= maxToolSchema {
			shown.Schema = quoteJSON(t.Schema)
		}
		view.Tools = append(view.Tools, shown)
	}
	for _, problem := range p.Problems[:min(len(p.Problems), maxProblems)] {
		view.Problems = append(view.Problems, quoteJSON(truncateRunes(problem, maxProblem)))
	}
	return Messages{System: renderTemplate("planner.system.txt", nil), User: renderTemplate("planner.user.txt", view)}
}

// VerifierData is the data of the verifier prompt.
type VerifierData struct {
	Goal    string
	Plan    string // JSON
	Outputs []StepOutput
}

// Render renders the verifier prompt.
func (v *VerifierData) Render() Messages {
	view := verifierView{
		Goal: quoteJSON(truncateBytes(v.Goal, contract.MaxGoalBytes)), Plan: quoteJSON(truncateBytes(v.Plan, maxPlanExcerpt)), Outputs: outputViews(v.Outputs),
	}
	return Messages{System: renderTemplate("verifier.system.txt", nil), User: renderTemplate("verifier.user.txt", view)}
}

// RepairReply adds a reply that is not valid and its flaw to a prompt.
func (m Messages) RepairReply(reply, problem string) Messages {
	m.User += renderTemplate("repair.txt", repairView{quoteJSON(truncateBytes(reply, contract.MaxReplyExcerpt)), quoteJSON(truncateRunes(problem, maxProblem))})
	return m
}

// Template data of orchestrations.
type (
	plannerView struct {
		Goal, Facts, Previous jsonLiteral
		Tools                 []toolView
		Omitted, MaxSteps     int
		NeedCriteria          bool
		Outputs               []outputView
		Problems              []jsonLiteral
	}
	toolView     struct{ Action, Description, Schema jsonLiteral }
	verifierView struct {
		Goal, Plan jsonLiteral
		Outputs    []outputView
	}
	outputView struct{ Step, Action, Status, Text jsonLiteral }
)

func outputViews(outputs []StepOutput) []outputView {
	outputs = outputs[max(0, len(outputs)-maxOutputs):]
	views := make([]outputView, len(outputs))
	for i, o := range outputs {
		views[i] = outputView{
			quoteJSON(truncateRunes(o.Step, maxTag)), quoteJSON(truncateRunes(o.Action, maxToolName)), quoteJSON(truncateRunes(o.Status, maxTag)),
			quoteJSON(truncateRunes(o.Text, maxOutputText)),
		}
	}
	return views
}
