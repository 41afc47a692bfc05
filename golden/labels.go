package golden

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

// Origin is what the right agent of a text is known from.
type Origin string

// The values of Origin.
const (
	OriginFeedback Origin = "feedback" // of a caller or an operator
	OriginModel    Origin = "model"    // a model was sure, and the agent succeeded
)

// LabelledText is the text of a recorded request whose right agent is known, or that no agent
// should get.
type LabelledText struct {
	RequestID string `json:"request_id"`
	Text      string `json:"text"`
	Agent     string `json:"agent"` // "" if no agent is right
	Intent    string `json:"intent"`
	Origin    Origin `json:"origin"`
}

// sureModel is the confidence of a model from which on its choice counts as right.
const sureModel = 0.8

// Reasons why a request whose right agent is known cannot be an example.
const (
	LeftMasked     = "masked"     // the record contains placeholders instead of personal data
	LeftSeveral    = "several"    // feedback expects several agents
	LeftUndeclared = "undeclared" // the registry file has no such agent, or the agent no such intent
	LeftIntent     = "intent"     // feedback names the agent, and the reading has none of its several intents
	LeftNone       = "none"       // feedback expects no agent
	LeftInvalid    = "invalid"    // the registry does not accept the text, for example because it is too long
)

// LabelDecisions returns the texts of the decision log whose right agent is known, or that no
// agent should get, one for each text, oldest first, and counts those that cannot be examples by
// reason.
// Feedback has precedence over a model, and later feedback over earlier feedback.
func LabelDecisions(registry *capabilities.Snapshot, entries []contract.DecisionEntry) (texts []LabelledText, left map[string]int) {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b contract.DecisionEntry) int { return a.At.Compare(b.At) })
	left = map[string]int{}
	position := map[string]int{}
	for i := range entries {
		label, reason := labelDecision(registry, &entries[i])
		if reason != "" {
			left[reason]++
			continue
		}
		if label == nil {
			continue
		}
		at, known := position[label.Text]
		switch {
		case !known:
			position[label.Text] = len(texts)
			texts = append(texts, *label)
		case label.Origin == OriginFeedback || texts[at].Origin == OriginModel:
			texts[at] = *label
		}
	}
	return texts, left
}

// labelDecision returns nil if the right agent of the request is not known, and a reason
// if it is known, but the text cannot be an example.
func labelDecision(registry *capabilities.Snapshot, e *contract.DecisionEntry) (label *LabelledText, reason string) {
	d := e.Decision
	if d == nil || strings.TrimSpace(e.Prompt) == "" {
		return nil, ""
	}
	label = &LabelledText{RequestID: e.RequestID, Text: strings.TrimSpace(e.Prompt), Intent: d.Classification.Intent}
	var agents []string
	label.Origin, agents = rightAgents(e)
	none := label.Origin == OriginFeedback && lastFeedback(e.Feedback).ExpectedNone
	switch {
	case len(agents) == 0 && !none:
		return nil, ""
	case len(agents) > 1:
		return nil, LeftSeveral
	case len(redact.PlaceholderKinds(label.Text)) > 0:
		return nil, LeftMasked
	case none:
		label.Intent = ""
		return label, ""
	}
	label.Agent = agents[0]
	entry := registry.Entry(label.Agent)
	if entry == nil {
		return nil, LeftUndeclared
	}
	expected := ""
	if label.Origin == OriginFeedback {
		expected = lastFeedback(e.Feedback).ExpectedIntent
	}
	switch intents := entry.Match.Intent; {
	case expected != "" && !slices.Contains(intents, expected):
		return nil, LeftUndeclared
	case expected != "":
		label.Intent = expected
	case slices.Contains(intents, label.Intent):
	case label.Origin == OriginModel:
		return nil, LeftUndeclared
	case len(intents) == 1:
		label.Intent = intents[0]
	default:
		near := slices.IndexFunc(d.Classification.Alternatives, func(a contract.IntentScore) bool { return slices.Contains(intents, a.Intent) })
		if near < 0 {
			return nil, LeftIntent
		}
		label.Intent = d.Classification.Alternatives[near].Intent
	}
	return label, ""
}

// rightAgents returns the agents that are right for the request as far as the record
// shows, and what shows it.
func rightAgents(e *contract.DecisionEntry) (Origin, []string) {
	if last := lastFeedback(e.Feedback); last != nil {
		if last.Verdict == contract.VerdictCorrect && servedByOne(e) {
			return OriginFeedback, e.Decision.Chosen
		}
		return OriginFeedback, last.ExpectedAgents
	}
	clf := &e.Decision.Classification
	byModel := clf.Source == contract.SourceLLM || clf.Source == contract.SourceCache
	if byModel && clf.Confidence >= sureModel && servedByOne(e) {
		return OriginModel, e.Decision.Chosen
	}
	return "", nil
}

// servedByOne reports whether one agent was chosen by the reading of the whole text, and
// succeeded.
func servedByOne(e *contract.DecisionEntry) bool {
	d := e.Decision
	return e.Status == contract.StatusCompleted && d.FallbackUsed == nil && d.OnlyAgent == "" &&
		len(d.Chosen) == 1 && len(d.Classification.Subtasks) <= 1
}

func lastFeedback(feedback []contract.Feedback) *contract.Feedback {
	if len(feedback) == 0 {
		return nil
	}
	last := slices.MaxFunc(feedback, func(a, b contract.Feedback) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return &last
}
