package contract

import "time"

// Verdict states whether a request went to the right agents.
type Verdict string

// Verdicts of a Feedback.
const (
	VerdictCorrect  Verdict = "correct"
	VerdictMisroute Verdict = "misroute"
)

// ValidVerdict reports whether v is a verdict.
func ValidVerdict(v Verdict) bool { return v == VerdictCorrect || v == VerdictMisroute }

// FeedbackRequest is the body of POST /api/v1/requests/{id}/feedback.
type FeedbackRequest struct {
	Verdict Verdict `json:"verdict" validate:"required,oneof=correct misroute"`
	// ExpectedAgents are the agents that should have been chosen, if the verdict is misroute.
	ExpectedAgents []string `json:"expected_agents,omitempty" validate:"max=20"`
	// ExpectedNone means that no agent should have been chosen, if the verdict is misroute.
	ExpectedNone bool `json:"expected_none,omitzero"`
	// ExpectedIntent is the intent that is right, of the one expected agent.
	ExpectedIntent string `json:"expected_intent,omitempty" validate:"max=64"`
	Comment        string `json:"comment,omitempty" validate:"max=1000"`
}

// Feedback is the verdict of one principal on the routing of a request.
type Feedback struct {
	Verdict        Verdict   `json:"verdict"`
	ExpectedAgents []string  `json:"expected_agents"`
	ExpectedNone   bool      `json:"expected_none,omitzero"`    // no agent is right
	ExpectedIntent string    `json:"expected_intent,omitempty"` // of the one expected agent
	Comment        string    `json:"comment,omitempty"`         // masked
	Tenant         string    `json:"tenant,omitempty"`          // of the principal
	Subject        string    `json:"subject"`
	At             time.Time `json:"at"`
}
