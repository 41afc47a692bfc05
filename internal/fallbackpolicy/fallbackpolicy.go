// Package fallbackpolicy answers requests for which no agent is eligible, by the
// policy of the registry or, if it is stricter, of the request:
//
//	A   a language model answers directly, within the rate limit of the caller
//	B   the response lists what the registry supports
//	C   the unmet demand is added to a ticket
//
// The texts of the answers are in package fallback.
package fallbackpolicy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/tickets"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Config is what a Handler works with. Model may be nil, all else is required.
type Config struct {
	Model           modeltext.Model // nil = no direct answers
	Answers         AnswerLimit
	Tickets         Tickets
	AnswerByDefault bool // policy A applies if the registry leaves the choice
	Logger          *slog.Logger
	Now             func() time.Time
}

// Tickets collects unmet demand.
type Tickets interface {
	Propose(ctx context.Context, d *tickets.Demand) (*contract.Proposal, error)
}

// Handler applies the fallback policy. It is safe for concurrent use.
type Handler struct{ cfg Config }

// New returns a Handler.
func New(cfg Config) *Handler { return &Handler{cfg: cfg} }

// Request is an accepted request without an eligible agent. It is immutable.
type Request struct {
	*execution.Request
	Catalogue *capabilities.Catalogue
	Lexical   *lexical.Model
	Reason    string             // why no agent is eligible
	Async     bool               // no caller waits for the response
	Filter    *visibility.Filter // of the caller
	// Serves reports whether an agent would get the text as a request of the caller.
	Serves func(text string) bool
}

// Answer answers the request and writes the policy it has applied to the decision.
// It returns an error if the ticket cannot be stored, or if the caller has used up
// its direct answers.
func (h *Handler) Answer(ctx context.Context, req *Request, resp *contract.Response) error {
	policy := h.selectPolicy(req.Catalogue)
	if req.Options.Fallback != nil {
		policy = *req.Options.Fallback // CheckPolicy has ensured that it is allowed
	}
	resp.Decision.FallbackUsed = &policy
	unmet := &fallback.Unmet{
		Catalogue: req.Catalogue,
		Lexical:   req.Lexical,
		Caller:    req.Caller,
		Prompt:    req.Prompt,
		Locale:    req.Locale,
		Turns:     req.Turns,
		OnlyAgent: req.OnlyAgent,
		Decision:  resp.Decision,
		Reason:    req.Reason,
		Serves:    req.Serves,
	}
	visible := unmet.VisibleTo(req.Filter) // its texts must not reveal hidden agents
	switch policy {
	case capabilities.FallbackAnswer:
		return h.answerDirectly(ctx, req, resp, visible)
	case capabilities.FallbackPropose:
		return h.proposeTicket(ctx, req, resp, unmet, visible)
	}
	resp.Status = contract.StatusUnsupported
	resp.Data.Mode = contract.DataUnsupported
	resp.Data.Unsupported = fallback.Unsupported(visible)
	return nil
}

// proposeTicket adds the unmet demand to a ticket.
func (h *Handler) proposeTicket(ctx context.Context, req *Request, resp *contract.Response, unmet, visible *fallback.Unmet) error {
	resp.Status = contract.StatusProposed
	resp.Data.Mode = contract.DataAgentProposal
	proposal, err := h.cfg.Tickets.Propose(ctx, &tickets.Demand{
		Unmet: unmet, Seen: visible, RequestID: req.RequestID, Locale: req.Locale, DataClasses: req.DataClasses, DryRun: req.Options.DryRun,
	})
	if err != nil {
		return store.CallerError(ctx, h.cfg.Logger, "the ticket cannot be stored", err)
	}
	resp.Data.Proposal = proposal
	return nil
}

// answerDirectly lets the model answer the caller, within the limit of the caller. A dry
// run does not call the model, but reports if there is none. If the limit is reached, a
// synchronous caller gets an error; an asynchronous request, which was accepted already,
// gets a response without an answer of the model.
func (h *Handler) answerDirectly(ctx context.Context, req *Request, resp *contract.Response, unmet *fallback.Unmet) error {
	resp.Status = contract.StatusCompleted
	if req.Options.DryRun && h.cfg.Model != nil {
		resp.Data.Mode = contract.DataServerFallback
		resp.Data.Classification = &resp.Decision.Classification
		resp.Data.Unsupported = fallback.Unsupported(unmet)
		return nil
	}
	var exceeded *contract.Limit
	resp.Data = fallback.Answer(ctx, h.cfg.Model, unmet, fallback.AnswerInput{
		Prompt: req.Prompt, History: req.Turns, Now: h.cfg.Now,
		Restore: func(text string) string { return req.Masking.RestoreText(text, nil) },
		TakeAnswer: func() bool {
			state, ok := h.cfg.Answers.Take(req.Caller)
			if !ok {
				exceeded = &state
			}
			return ok
		},
	})
	resp.Data.DryRun = req.Options.DryRun
	resp.Data.Classification = &resp.Decision.Classification // unfiltered: the filter copies it from the decision
	if resp.Data.Degraded && errors.Is(ctx.Err(), context.Canceled) {
		resp.Status = contract.StatusCancelled
	}
	if exceeded == nil || req.Async {
		return nil
	}
	return &contract.Error{
		Code: contract.CodeRateLimited, Limit: exceeded,
		Message: "the limit of direct answers by the model is reached: wait, or send the request with options.fallback B",
	}
}

// AnswerLimit is the rate limit of direct answers by a model (policy A). It is
// separate from other limits, because a direct answer costs more than a
// classification.
type AnswerLimit interface {
	// Take reports whether the caller may have one more answer, with the state of
	// its limit.
	Take(caller *contract.Caller) (contract.Limit, bool)
}

// Unlimited is the AnswerLimit that never rejects a request.
type Unlimited struct{}

// Take implements AnswerLimit.
func (Unlimited) Take(*contract.Caller) (contract.Limit, bool) { return contract.Limit{}, true }

// PreviewTickets is for a router without a store: it shows the ticket that the
// demand would be added to.
type PreviewTickets struct{}

// Propose implements Tickets.
func (PreviewTickets) Propose(_ context.Context, d *tickets.Demand) (*contract.Proposal, error) {
	return tickets.Preview(d), nil
}

// EraseRequest does nothing, because nothing is stored.
func (PreviewTickets) EraseRequest(context.Context, string) error { return nil }

func (h *Handler) selectPolicy(c *capabilities.Catalogue) string {
	return SelectPolicy(c, h.cfg.AnswerByDefault)
}

// SelectPolicy returns the fallback policy of the catalogue. If the catalogue leaves the
// choice, requests are answered directly if a model classifies them anyway, which is
// answerByDefault.
func SelectPolicy(c *capabilities.Catalogue, answerByDefault bool) string {
	switch p := c.Fallback.Policy; {
	case p == capabilities.FallbackAnswer, p == capabilities.FallbackAuto && answerByDefault:
		return capabilities.FallbackAnswer
	case p == capabilities.FallbackPropose:
		return p
	}
	return capabilities.FallbackUnsupported
}

// CheckPolicy adds a detail to e if the requested policy allows more than that of
// the catalogue. A request may always ask for B.
func (h *Handler) CheckPolicy(c *capabilities.Catalogue, requested string, e *contract.Error) {
	if requested != capabilities.FallbackUnsupported && requested != h.selectPolicy(c) {
		e.Add("/options/fallback", "policy "+requested+" is not the registry's: leave it out, or use B")
	}
}
