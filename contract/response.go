package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Status is the state of a request.
type Status string

// Statuses of a Response. Accepted and Running are not terminal.
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

// Terminal reports whether the status is final.
func (s Status) Terminal() bool { return s != "" && s != StatusAccepted && s != StatusRunning }

// DataMode is the kind of Response.Data.
type DataMode string

// Modes of Response.Data.
const (
	DataDispatch       DataMode = "dispatch"
	DataServerFallback DataMode = "server_fallback"
	DataUnsupported    DataMode = "unsupported"
	DataAgentProposal  DataMode = "agent_proposal"
	DataClarification  DataMode = "clarification"
)

// Response is the answer to a Request or, for an asynchronous one in progress,
// its current state: then Decision may be nil, and Tasks contains the tasks
// dispatched so far.
type Response struct {
	RequestID string       `json:"request_id"`
	TraceID   string       `json:"trace_id"`
	Status    Status       `json:"status"`
	Decision  *Decision    `json:"decision"`
	Tasks     []TaskReport `json:"tasks"`
	Omitted   []Omitted    `json:"omitted"`
	Data      ResponseData `json:"data"`
	// Feedback is set if a stored request is looked up: that of the caller's tenant.
	Feedback []Feedback `json:"feedback,omitempty"`

	Replayed bool `json:"-"` // stored answer to an earlier request with the same idempotency key
}

// Decision is the routing decision with everything it is based on. It is
// returned, logged and, for a dry run, the only result.
type Decision struct {
	DecisionID      string             `json:"decision_id"`
	Classification  Classification     `json:"classification"`
	Candidates      []Candidate        `json:"candidates"`       // best first, at most 20 per subtask
	CandidatesTotal int                `json:"candidates_total"` // matching agents that the caller may see
	Chosen          []string           `json:"chosen"`
	Standby         []string           `json:"standby"`
	TieBreak        *TieBreak          `json:"tie_break"`
	FallbackUsed    *string            `json:"fallback_used"`        // "A", "B", "C" or null
	OnlyAgent       string             `json:"only_agent,omitempty"` // the one agent that could be a candidate, by the request or its session
	RegistryVersion string             `json:"registry_version"`
	FleetRevision   string             `json:"fleet_revision,omitempty"` // changes with the addresses and states of agents as well
	TimingsMS       map[string]float64 `json:"timings_ms"`
	// Hidden are matching agents that the caller may not use. They are
	// recorded, and shown only to callers that may see them.
	Hidden []Candidate `json:"hidden,omitempty"`
}

// Role is the result of a candidate.
type Role string

// Roles of a Candidate.
const (
	RoleChosen    Role = "chosen"
	RoleStandby   Role = "standby"
	RoleCandidate Role = "candidate"
)

// Candidate is an agent that matches, with its score.
type Candidate struct {
	AgentID        string     `json:"agent_id"`
	Subtask        *int       `json:"subtask,omitempty"` // index into classification.subtasks, if each is matched separately
	Score          float64    `json:"score"`
	Parts          ScoreParts `json:"parts"`
	MatchedDomains []string   `json:"matched_domains"`
	Eligible       bool       `json:"eligible"`
	Role           Role       `json:"role"`
	Gates          []Gate     `json:"gates"` // unmet conditions; empty if eligible
}

// ScoreParts are the summands of a score.
type ScoreParts struct {
	Intent      float64 `json:"intent"`
	Domains     float64 `json:"domains"`
	Constraints float64 `json:"constraints"` // ≤ 0
}

// Gate is a condition that a candidate does not meet.
type Gate struct {
	Gate   string `json:"gate"` // entitlement, state, scopes, tenant, data_classes, accepts_data_classes, grants, threshold, confidence
	Reason string `json:"reason"`
}

// TieBreak is the rule that ranked Winner before Over at the same score.
type TieBreak struct {
	Rule   string `json:"rule"` // matched_domains, specificity, priority, id
	Winner string `json:"winner"`
	Over   string `json:"over"`
	Reason string `json:"reason"`
}

// TaskStatus is the state of one task of a request.
type TaskStatus string

// Statuses of a TaskReport. The first three are reported by the agent. Only
// running is not terminal.
const (
	TaskSuccess   TaskStatus = "success"
	TaskPartial   TaskStatus = "partial"
	TaskFailure   TaskStatus = "failure"
	TaskFailed    TaskStatus = "failed" // no usable result; see Error
	TaskCancelled TaskStatus = "cancelled"
	TaskRunning   TaskStatus = "running" // dispatched, no result yet
)

// TaskReport is the result of one task.
type TaskReport struct {
	TaskID       string     `json:"task_id"`
	AgentID      string     `json:"agent_id"`
	SubtaskTitle string     `json:"subtask_title"`
	Status       TaskStatus `json:"status"`
	Attempts     int        `json:"attempts"`
	LatencyMS    float64    `json:"latency_ms"`
	Error        *TaskError `json:"error"`
	// Metrics are numbers that the agent reported, at most MaxMetrics.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Logs are lines that the agent reported, masked. They are recorded, and returned
	// if Options.Logs is set.
	Logs []string `json:"logs,omitempty"`
	// FailedOver lists the agents that were tried before AgentID, in order.
	FailedOver []FailedAttempt `json:"failed_over,omitempty"`
}

// WithoutLogs returns the response without the logs of its agents.
func (r *Response) WithoutLogs() *Response {
	if r == nil || !slices.ContainsFunc(r.Tasks, func(t TaskReport) bool { return t.Logs != nil }) {
		return r
	}
	without := *r
	without.Tasks = slices.Clone(r.Tasks)
	for i := range without.Tasks {
		without.Tasks[i].Logs = nil
	}
	return &without
}

// FailedAttempt is a failed attempt before failover to another agent.
type FailedAttempt struct {
	TaskID    string     `json:"task_id"`
	AgentID   string     `json:"agent_id"`
	Status    TaskStatus `json:"status"`
	Attempts  int        `json:"attempts"`
	LatencyMS float64    `json:"latency_ms"`
	Error     *TaskError `json:"error"` // null if the agent reported the failure
	// Explanations are those of the agent.
	Explanations []string `json:"explanations,omitempty"`
}

// AsFailedAttempt returns the report of a task that another agent repeats, with the
// explanations of its result, which may be nil.
func (r *TaskReport) AsFailedAttempt(result *Result) FailedAttempt {
	failed := FailedAttempt{
		TaskID: r.TaskID, AgentID: r.AgentID, Status: r.Status, Attempts: r.Attempts, LatencyMS: r.LatencyMS, Error: r.Error,
	}
	if result != nil {
		failed.Explanations = result.Explanations
	}
	return failed
}

// TaskError is the reason why a task has no usable result.
type TaskError struct {
	Code   TaskCode `json:"code"`
	Detail string   `json:"detail"`
	// Address and Reply are shown to operators only: the URL that was called, and
	// the first MaxAgentReply characters of the agent's reply, masked.
	Address string `json:"address,omitempty"`
	Reply   string `json:"reply,omitempty"`
}

// MaxAgentReply bounds TaskError.Reply, in characters.
const MaxAgentReply = 200

// TaskCode is a stable error code of a task.
type TaskCode string

// Codes of a TaskError.
const (
	TaskAgentUnavailable TaskCode = "agent_unavailable"
	TaskDeadlineExceeded TaskCode = "deadline_exceeded"
	TaskBadResult        TaskCode = "bad_result"
	TaskOutcomeUnknown   TaskCode = "outcome_unknown"
	TaskWasCancelled     TaskCode = "cancelled"
	TaskInvalidInput     TaskCode = "invalid_input" // the request lacks something that the agent needs
)

// OmittedNotUnderstood is the reason of a part of the request that asks for
// something that no agent declares.
const OmittedNotUnderstood = "not_understood"

// Omitted is a subtask that no eligible agent exists for.
type Omitted struct {
	Subtask int      `json:"subtask"` // index into classification.subtasks
	Title   string   `json:"title"`
	Intent  string   `json:"intent"`
	Domains []string `json:"domains"`
	Reason  string   `json:"reason"`
}

// ResponseData is the payload of a Response, depending on its mode.
type ResponseData struct {
	Mode   DataMode `json:"mode,omitempty"` // "" before the decision
	DryRun bool     `json:"dry_run,omitzero"`

	// mode dispatch
	Results []AgentResult `json:"results,omitempty"` // in subtask order
	Answer  string        `json:"answer,omitempty"`

	// mode server_fallback: Answer, and
	Classification *Classification `json:"classification,omitempty"`
	Degraded       bool            `json:"degraded,omitzero"`         // no model replied: Answer reports this, and Unsupported lists supported requests
	DegradedReason string          `json:"degraded_reason,omitempty"` // llm_not_configured, llm_timeout, rate_limited …; in mode dispatch, why Answer is no summary
	AnsweredBy     *ModelUse       `json:"answered_by,omitempty"`     // in mode dispatch, the model that was asked for a summary

	// mode clarification: the caller picks an option with Request.Clarification
	Question string                `json:"question,omitempty"`
	Because  string                `json:"because,omitempty"` // ambiguous, divergent
	Options  []ClarificationOption `json:"options,omitempty"`

	// mode agent_proposal
	Proposal *Proposal `json:"proposal,omitempty"`

	// mode unsupported: its members are at the level of "mode"
	*Unsupported
}

// ClarificationOption is one interpretation of an ambiguous request.
type ClarificationOption struct {
	ID      string   `json:"id"`
	Label   string   `json:"label"` // display text
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

// AgentResult is an agent's result in the answer.
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

// Unsupported is the answer of policy B: why no agent is eligible, and what the
// caller can ask instead. Lists contain only what the caller may use.
type Unsupported struct {
	Reason          string          `json:"reason"` // no_match, low_confidence, ambiguous, divergent, not_entitled, gated
	Detail          string          `json:"detail"` // for an end user
	Needed          Needed          `json:"needed"`
	Nearest         []NearestMiss   `json:"nearest"`
	NearestReading  *NearestReading `json:"nearest_reading,omitempty"`
	AcceptedIntents []string        `json:"accepted_intents"`
	AcceptedDomains []string        `json:"accepted_domains"`
	Examples        []string        `json:"examples"` // most similar declared utterances
}

// NearestReading is the most likely reading that was not sure enough. If the agent serves such
// requests already, the request is missing in its examples.
type NearestReading struct {
	AgentID    string  `json:"agent_id"`
	Intent     string  `json:"intent"` // of the agent
	Confidence float64 `json:"confidence"`
}

// Needed is what a request needs for an agent: the score of the agent and the
// confidence of the classification.
type Needed struct {
	Score      float64 `json:"score"`
	Confidence float64 `json:"confidence"`
}

// NearestMiss is an agent that almost matched, and what it lacks.
type NearestMiss struct {
	AgentID      string  `json:"agent_id"`
	Score        float64 `json:"score"`
	MissingScore float64 `json:"missing_score"` // below the threshold; 0 if a gate, not the score, excluded it
	Gates        []Gate  `json:"gates"`
}
