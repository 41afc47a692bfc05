// Package replay routes recorded decisions with another registry, and reports which
// requests would be served differently, and why. It stores nothing and calls no agent
// and no model.
//
//	decision log ──▶ entries, as the reader may see them
//	                    │  classification   of a model, or pinned: as recorded
//	                    │                   lexical: anew, with the words of the candidate
//	                    ▼
//	              router/plan with the candidate ──▶ internal/routediff ──▶ Report
//
//	report, err := replay.Run(ctx, replay.Config{Candidate: snapshot, Reader: caller}, service.Decisions)
//
// The log does not contain everything that a decision depended on. Each missing
// fact is assumed to be as favourable as the recorded decision permits: the caller may
// use every agent, and has every scope, except where the record shows otherwise; and an
// agent that was unavailable is unavailable again.
package replay

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/routediff"
)

// Limits of the number of decisions.
const (
	DefaultLimit = 1000
	MaxLimit     = 10_000
)

// Bounds of the work and of a report.
const (
	pageSize   = 200 // decisions that are in memory at a time
	extraPages = 20  // reads of the log, beside those that the limit needs, for a reader that may see few decisions
	maxChanges = 1000
	maxPrompt  = 200 // characters
)

// Config controls a replay. Candidate and Reader are required.
type Config struct {
	Candidate *capabilities.Snapshot
	// Reader is the caller that gets the report. Only agents that it may see serve the
	// replayed requests.
	Reader *contract.Caller
	// AnswerByDefault makes A the policy of a candidate that leaves the choice.
	AnswerByDefault bool
	// Registered are agents that registered themselves, by id. A registry file does not
	// contain them, so their requests cannot be replayed.
	Registered map[string]bool

	Since  time.Time
	Limit  int    // decisions, replayable or not; 0 = DefaultLimit
	Cursor string // Report.NextCursor of an earlier replay; "" = from Since on

	Pace     func() bool           // called often, if it is set; see lint.Turn.Pace
	Progress func(done, limit int) // called after each decision; may be nil
}

// ReadPage reads a page of the decision log, oldest first, with what the reader may see.
type ReadPage func(context.Context, contract.DecisionQuery) (*contract.DecisionPage, error)

// Report is the result of a replay.
type Report struct {
	Registry      string          `json:"registry_version"` // of the candidate
	Replayed      int             `json:"replayed"`
	Same          int             `json:"same"`
	Changed       int             `json:"changed"`
	NotReplayable []NotReplayable `json:"not_replayable"` // by reason
	Changes       []Change        `json:"changes"`        // oldest first, at most 1,000
	// NextCursor continues the replay. It is "" if all decisions were read.
	NextCursor string `json:"next_cursor,omitempty"`
}

// NotReplayable counts decisions that cannot be replayed for one reason.
type NotReplayable struct {
	Reason Reason `json:"reason"`
	Count  int    `json:"count"`
}

// Reason is why a decision cannot be replayed.
type Reason string

// The reasons.
const (
	ReasonErased     Reason = "erased"           // the text was erased, or has expired
	ReasonNotDecided Reason = "no_agent"         // the record shows no agent, no fallback and no question
	ReasonRegistered Reason = "registered_agent" // an agent got it that registered itself
)

// Describe returns the reason as a clause.
func (r Reason) Describe() string {
	switch r {
	case ReasonErased:
		return "the text was erased or has expired"
	case ReasonRegistered:
		return "an agent got it that registered itself, and no registry file contains it"
	}
	return "no agent was available, or the request ended before one was chosen"
}

// Change is a request that the candidate would serve differently.
type Change struct {
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`
	Prompt    string    `json:"prompt"` // masked; its beginning
	What      []string  `json:"what"`   // outcome, agents, intent
	Before    Outcome   `json:"before"`
	After     Outcome   `json:"after"`
	Because   []string  `json:"because"`
}

// Outcome is the routing outcome of a request.
type Outcome struct {
	Outcome  string   `json:"outcome"` // dispatch, clarify or fallback
	Intent   string   `json:"intent"`
	Domains  []string `json:"domains"`
	Agents   []string `json:"agents"`
	Fallback *string  `json:"fallback"` // "A", "B", "C" or null
}

// Values of Outcome.Outcome.
const (
	OutcomeDispatch = "dispatch"
	OutcomeClarify  = "clarify"
	OutcomeFallback = "fallback"
)

// Run replays decisions until the limit, and reads the log in pages. If ctx ends, the
// error is that of ctx.
func Run(ctx context.Context, cfg Config, read ReadPage) (*Report, error) {
	if cfg.Limit <= 0 {
		cfg.Limit = DefaultLimit
	}
	if cfg.Pace == nil {
		cfg.Pace = func() bool { return true }
	}
	c, err := newCandidate(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	report := &Report{Registry: cfg.Candidate.Catalogue.Version, NotReplayable: []NotReplayable{}, Changes: []Change{}}
	query := contract.DecisionQuery{Since: cfg.Since, Cursor: cfg.Cursor}
	for done, pages := 0, cfg.Limit/pageSize+extraPages; ; pages-- {
		query.Limit = min(pageSize, max(cfg.Limit-done, 1))
		page, err := read(ctx, query)
		if err != nil {
			return nil, err
		}
		cfg.Pace()
		switch {
		case page.NextCursor == query.Cursor:
			report.NextCursor = ""
			return report, nil
		case done == cfg.Limit && len(page.Decisions) > 0, pages == 0:
			return report, nil
		}
		for i := range page.Decisions {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			report.add(c.replay(&page.Decisions[i]))
			done++
			cfg.Pace()
			if cfg.Progress != nil {
				cfg.Progress(done, cfg.Limit)
			}
		}
		query.Cursor, report.NextCursor = page.NextCursor, page.NextCursor
	}
}

// add counts a decision. A nil change means that the request would be served as before.
func (r *Report) add(change *Change, not Reason) {
	switch {
	case not != "":
		r.countNotReplayable(not)
		return
	case change == nil:
		r.Same++
	default:
		r.Changed++
		if len(r.Changes) < maxChanges {
			r.Changes = append(r.Changes, *change)
		}
	}
	r.Replayed++
}

func (r *Report) countNotReplayable(reason Reason) {
	at, found := slices.BinarySearchFunc(r.NotReplayable, reason, func(n NotReplayable, reason Reason) int {
		return strings.Compare(string(n.Reason), string(reason))
	})
	if !found {
		r.NotReplayable = slices.Insert(r.NotReplayable, at, NotReplayable{Reason: reason})
	}
	r.NotReplayable[at].Count++
}

// replay returns the change, nil if there is none, or why the decision cannot be
// replayed.
func (c *candidate) replay(e *contract.DecisionEntry) (*Change, Reason) {
	if not := c.notReplayable(e); not != "" {
		return nil, not
	}
	before, after := recordedSide(e), c.route(e)
	what := slices.DeleteFunc(routediff.Compare(before, after), func(part string) bool {
		return part == "domains" || part == "intent" && after.Outcome != OutcomeDispatch
	})
	if len(what) == 0 {
		return nil, ""
	}
	change := &Change{
		RequestID: e.RequestID, At: e.At, Prompt: cutPrompt(e.Prompt), What: what,
		Before: newOutcome(before, e.Decision.FallbackUsed), Because: routediff.Explain(before, after),
	}
	policy := c.policy
	change.After = newOutcome(after, &policy)
	change.Because = append(change.Because, c.explainUndeclared(after)...)
	return change, ""
}

// notReplayable returns "" if the decision can be replayed.
func (c *candidate) notReplayable(e *contract.DecisionEntry) Reason {
	d := e.Decision
	switch {
	case d == nil:
		return ReasonErased
	case outcomeOf(e) == "":
		return ReasonNotDecided
	case d.Classification.Source == contract.SourceLexical && e.Prompt == "":
		return ReasonErased
	}
	catalogue := c.view.Catalogue
	for _, id := range d.Chosen {
		if c.cfg.Registered[id] && catalogue.Agent(id) == nil {
			return ReasonRegistered
		}
	}
	return ""
}

// outcomeOf returns the recorded outcome, or "" if there is none.
func outcomeOf(e *contract.DecisionEntry) string {
	switch {
	case e.Status == contract.StatusClarify:
		return OutcomeClarify
	case e.Decision.FallbackUsed != nil:
		return OutcomeFallback
	case len(e.Decision.Chosen) > 0:
		return OutcomeDispatch
	}
	return ""
}

func recordedSide(e *contract.DecisionEntry) *routediff.Side {
	side := newSide("before", e.Decision)
	side.Outcome = outcomeOf(e)
	return side
}

func newSide(label string, d *contract.Decision) *routediff.Side {
	clf := &d.Classification
	return &routediff.Side{
		Label: label, Agents: d.Chosen, Intent: clf.Intent, Domains: clf.Domains, Confidence: clf.Confidence, Decision: d,
	}
}

// newOutcome returns the wire form. The policy counts for a fallback only.
func newOutcome(s *routediff.Side, policy *string) Outcome {
	o := Outcome{
		Outcome: s.Outcome, Intent: s.Intent, Domains: append([]string{}, s.Domains...), Agents: append([]string{}, s.Agents...),
	}
	if s.Outcome == OutcomeFallback {
		o.Fallback = policy
	}
	return o
}

func cutPrompt(prompt string) string {
	n := 0
	for i := range prompt {
		if n == maxPrompt-1 && strings.TrimSpace(prompt[i:]) != "" {
			return prompt[:i] + "…"
		}
		n++
	}
	return prompt
}
