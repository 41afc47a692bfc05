package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Status is the state of a request.
type Status string

// The statuses of a Response. Accepted and Running are not terminal.
const (
	StatusAccepted    Status = "accepted"
	StatusRunning     Status = "running"
	StatusCompleted   Status = "completed"
	StatusPartial     Status = "partial"
	StatusFailed      Status = "failed"
	StatusClarify     Status = "clarification_required"
	StatusUnsupported Status = "unsupported"
	StatusProposed    Status = "proposed"
	StatusCancelled   Status = "cancelled"
)

// Terminal reports whether nothing more becomes of a request.
func (s Status) Terminal() bool { return s != "" && s != StatusAccepted && s != StatusRunning }

// DataMode says what Response.Data holds.
type DataMode string

// The modes of Response.Data.
const (
	DataDispatch       DataMode = "dispatch"
	DataServerFallback DataMode = "server_fallback"
	DataUnsupported    DataMode = "unsupported"
	DataAgentProposal  DataMode = "agent_proposal"
	DataClarification  DataMode = "clarification"
)

// Response is the answer to a Request, or how far an asynchronous one has come:
// then Decision may be nil, and Tasks holds what was given out so far.
type Response struct {
	RequestID string       `json:"request_id"`
	TraceID   string       `json:"trace_id"`
	Status    Status       `json:"status"`
	Decision  *Decision    `json:"decision"`
	Tasks     []TaskReport `json:"tasks"`
	Omitted   []Omitted    `json:"omitted"`
	Data      ResponseData `json:"data"`

	Replayed bool `json:"-"` // the stored answer to an earlier request with the same Idempotency-Key
}

// Decision is how the request was routed: everything the arithmetic saw and
// chose. It is returned, logged and, on a dry run, all there is.
type Decision struct {
	DecisionID      string             `json:"decision_id"`
	Classification  Classification     `json:"classification"`
	Candidates      []Candidate        `json:"candidates"`       // best first, at most 20 a subtask
	CandidatesTotal int                `json:"candidates_total"` // all agents that hit and the caller may see
	Chosen          []string           `json:"chosen"`
	Standby         []string           `json:"standby"`
	TieBreak        *TieBreak          `json:"tie_break"`
	FallbackUsed    *string            `json:"fallback_used"` // "A", "B", "C" or null
	RegistryVersion string             `json:"registry_version"`
	TimingsMS       map[string]float64 `json:"timings_ms"`
	// Hidden are the agents that hit and the caller may not use: on record, and
	// shown to nobody but who may see them.
	Hidden []Candidate `json:"hidden,omitempty"`
}

// Role is what became of a candidate.
type Role string

// The roles of a Candidate.
const (
	RoleChosen    Role = "chosen"
	RoleStandby   Role = "standby"
	RoleCandidate Role = "candidate"
)

// Candidate is one agent the arithmetic looked at, with its score shown.
type Candidate struct {
	AgentID        string     `json:"agent_id"`
	Subtask        *int       `json:"subtask,omitempty"` // index into classification.subtasks, when each is matched by itself
	Score          float64    `json:"score"`
	Parts          ScoreParts `json:"parts"`
	MatchedDomains []string   `json:"matched_domains"`
	Eligible       bool       `json:"eligible"`
	Role           Role       `json:"role"`
	Gates          []Gate     `json:"gates"` // what kept it out; empty when eligible
}

// ScoreParts are the addends of a score (003 §3).
type ScoreParts struct {
	Intent      float64 `json:"intent"`
	Domains     float64 `json:"domains"`
	Constraints float64 `json:"constraints"` // ≤ 0
}

// Gate is one condition a candidate did not meet.
type Gate struct {
	Gate   string `json:"gate"` // entitlement, state, scopes, tenant, data_classes, grants, threshold, confidence
	Reason string `json:"reason"`
}

// TieBreak names the rule that put Winner before Over at the same score.
type TieBreak struct {
	Rule   string `json:"rule"` // matched_domains, specificity, priority, id
	Winner string `json:"winner"`
	Over   string `json:"over"`
	Reason string `json:"reason"`
}

// TaskStatus is the state of one task of a request.
type TaskStatus string

// The statuses of a TaskReport; the first three are the agent's own word. Only
// running is not terminal.
const (
	TaskSuccess   TaskStatus = "success"
	TaskPartial   TaskStatus = "partial"
	TaskFailure   TaskStatus = "failure"
	TaskFailed    TaskStatus = "failed" // no usable result: Error says why
	TaskCancelled TaskStatus = "cancelled"
	TaskRunning   TaskStatus = "running" // given out, and no result yet
)

// TaskReport says what became of one task.
type TaskReport struct {
	TaskID       string     `json:"task_id"`
	AgentID      string     `json:"agent_id"`
	SubtaskTitle string     `json:"subtask_title"`
	Status       TaskStatus `json:"status"`
	Attempts     int        `json:"attempts"`
	LatencyMS    float64    `json:"latency_ms"`
	Error        *TaskError `json:"error"`
	// FailedOver lists the agents tried before AgentID, first to last.
	FailedOver []FailedAttempt `json:"failed_over,omitempty"`
}

// FailedAttempt is an agent that did not deliver before another one took over.
type FailedAttempt struct {
	TaskID    string     `json:"task_id"`
	AgentID   string     `json:"agent_id"`
	Status    TaskStatus `json:"status"`
	Attempts  int        `json:"attempts"`
	LatencyMS float64    `json:"latency_ms"`
	Error     *TaskError `json:"error"` // null when the agent itself said failure
	// Explanations are the agent's own, of its failure.
	Explanations []string `json:"explanations,omitempty"`
}

// TaskError is why a task has no usable result.
type TaskError struct {
	Code   TaskCode `json:"code"`
	Detail string   `json:"detail"`
}

// TaskCode is a stable reason inside a task.
type TaskCode string

// The codes of a TaskError.
const (
	TaskAgentUnavailable TaskCode = "agent_unavailable"
	TaskDeadlineExceeded TaskCode = "deadline_exceeded"
	TaskBadResult        TaskCode = "bad_result"
	TaskOutcomeUnknown   TaskCode = "outcome_unknown"
	TaskWasCancelled     TaskCode = "cancelled"
)

// Omitted is a subtask nobody may serve, with the reason.
type Omitted struct {
	Subtask int      `json:"subtask"` // index into classification.subtasks
	Title   string   `json:"title"`
	Intent  string   `json:"intent"`
	Domains []string `json:"domains"`
	Reason  string   `json:"reason"`
}

// ResponseData is the payload of a Response, by mode.
type ResponseData struct {
	Mode   DataMode `json:"mode,omitempty"` // "" while nothing is decided
	DryRun bool     `json:"dry_run,omitzero"`

	// mode dispatch
	Results []AgentResult `json:"results,omitempty"` // in subtask order
	Answer  string        `json:"answer,omitempty"`

	// mode server_fallback (003 §5 A): Answer, and
	Classification *Classification `json:"classification,omitempty"`
	Degraded       bool            `json:"degraded,omitzero"`         // no model answered: Answer says so, and Unsupported what is served
	DegradedReason string          `json:"degraded_reason,omitempty"` // llm_not_configured, llm_timeout, rate_limited …
	AnsweredBy     *ModelUse       `json:"answered_by,omitempty"`

	// mode clarification: the caller picks an option with Request.Clarification
	Question string                `json:"question,omitempty"`
	Because  string                `json:"because,omitempty"` // ambiguous, divergent
	Options  []ClarificationOption `json:"options,omitempty"`

	// mode agent_proposal (003 §5 C)
	Proposal *Proposal `json:"proposal,omitempty"`

	// mode unsupported (003 §5 B): its members stand beside "mode"
	*Unsupported
}

// ClarificationOption is one reading of a request that has several.
type ClarificationOption struct {
	ID      string   `json:"id"`
	Label   string   `json:"label"` // for people
	Intent  string   `json:"intent"`
	Domains []string `json:"domains"`
}

// OptionLabel is the label of a reading for people, for example "code review
// (python)".
func OptionLabel(intent string, domains []string) string {
	label := strings.ReplaceAll(intent, "_", " ")
	named := slices.DeleteFunc(slices.Clone(domains), func(d string) bool { return d == Unknown })
	if len(named) == 0 {
		return label
	}
	return fmt.Sprintf("%s (%s)", label, strings.Join(named, ", "))
}

// AgentResult is one agent's result, as it goes into the answer.
type AgentResult struct {
	AgentID      string                     `json:"agent_id"`
	SubtaskTitle string                     `json:"subtask_title,omitempty"`
	Status       TaskStatus                 `json:"status"`
	Data         map[string]json.RawMessage `json:"data"`
	Explanations []string                   `json:"explanations,omitempty"`
}

// AnswerText is the text of the only result that has one, or else one section for
// each result with a text.
func AnswerText(results []AgentResult) string {
	var sections []string
	var last string
	for i := range results {
		res := &results[i]
		if text := (&Result{Data: res.Data}).Text(); text != "" {
			sections = append(sections, "## "+res.SubtaskTitle+" ("+res.AgentID+")\n\n"+text)
			last = text
		}
	}
	if len(sections) < 2 {
		return last
	}
	return strings.Join(sections, "\n\n")
}

// Unsupported explains policy B: why nobody may serve the request, and what
// the caller could ask for instead. Lists hold only what the caller may use.
type Unsupported struct {
	Reason          string        `json:"reason"` // no_match, low_confidence, ambiguous, divergent, not_entitled, gated
	Detail          string        `json:"detail"`
	Nearest         []NearestMiss `json:"nearest"`
	AcceptedIntents []string      `json:"accepted_intents"`
	AcceptedDomains []string      `json:"accepted_domains"`
	Examples        []string      `json:"examples"` // nearest declared utterances
}

// NearestMiss is an agent that came close, and what it lacks.
type NearestMiss struct {
	AgentID      string  `json:"agent_id"`
	Score        float64 `json:"score"`
	MissingScore float64 `json:"missing_score"` // to the threshold; 0 when a gate, not the score, kept it out
	Gates        []Gate  `json:"gates"`
}
