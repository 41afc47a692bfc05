package router

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/tickets"
	"github.com/caprouter/caprouter/internal/visibility"
	"github.com/caprouter/caprouter/router/plan"
)

// fallbackStage answers requests without an eligible agent.
type fallbackStage struct {
	model           fallback.Model // nil = no direct answers
	answers         AnswerLimit
	tickets         Tickets
	answerByDefault bool
	logger          *slog.Logger
	now             func() time.Time
}

// answerUnmet answers a request without an eligible agent, by one of three policies:
// A, the model answers directly; B, the response lists what is supported; C, the
// demand goes into a ticket. It returns an error if the ticket cannot be stored, or
// if the caller has used up its direct answers.
func (f *fallbackStage) answerUnmet(
	ctx context.Context, run *requestRun, p *plan.Plan, resp *contract.Response, filter *visibility.Filter,
) error {
	defer run.timings.endStage("fallback")
	policy := f.selectPolicy(run.view)
	if run.Options.Fallback != nil {
		policy = *run.Options.Fallback // checkPolicy has ensured that it is allowed
	}
	resp.Decision.FallbackUsed = &policy
	unmet := &fallback.Unmet{
		Catalogue: run.view.Catalogue,
		Lexical:   run.view.Lexical,
		Caller:    run.Caller,
		Prompt:    run.Prompt,
		OnlyAgent: run.OnlyAgent,
		Decision:  resp.Decision,
		Reason:    p.Reason,
	}
	visible := unmet.VisibleTo(filter) // its texts must not reveal what is hidden
	switch policy {
	case capabilities.FallbackAnswer:
		return f.answerDirectly(ctx, run, resp, visible)
	case capabilities.FallbackPropose:
		return f.proposeTicket(ctx, run, resp, unmet, visible)
	}
	resp.Status = contract.StatusUnsupported
	resp.Data.Mode = contract.DataUnsupported
	resp.Data.Unsupported = fallback.Unsupported(visible)
	return nil
}

// proposeTicket adds the unmet demand to a ticket.
func (f *fallbackStage) proposeTicket(ctx context.Context, run *requestRun, resp *contract.Response, unmet, visible *fallback.Unmet) error {
	resp.Status = contract.StatusProposed
	resp.Data.Mode = contract.DataAgentProposal
	proposal, err := f.tickets.Propose(ctx, &tickets.Demand{
		Unmet: unmet, Seen: visible, RequestID: run.RequestID, Locale: run.Locale, DataClasses: run.Masking.Kinds(), DryRun: run.isDryRun(),
	})
	if err != nil {
		return store.CallerError(ctx, f.logger, "the ticket cannot be stored", err)
	}
	resp.Data.Proposal = proposal
	return nil
}

// answerDirectly lets the model answer the caller, within the limit of the caller.
// A dry run does not call the model. If the limit is reached, a synchronous caller
// gets an error; an asynchronous request, which was accepted already, gets a
// response without an answer of the model.
func (f *fallbackStage) answerDirectly(ctx context.Context, run *requestRun, resp *contract.Response, unmet *fallback.Unmet) error {
	resp.Status = contract.StatusCompleted
	if run.isDryRun() {
		resp.Data.Mode = contract.DataServerFallback
		resp.Data.Classification = &resp.Decision.Classification
		resp.Data.Unsupported = fallback.Unsupported(unmet)
		return nil
	}
	var exceeded *contract.Limit
	resp.Data = fallback.Answer(ctx, f.model, unmet, fallback.AnswerInput{
		Prompt: run.Prompt, History: run.Turns, Locale: run.Locale, Now: f.now,
		Restore: func(text string) string { return run.Masking.RestoreText(text, nil) },
		TakeAnswer: func() bool {
			state, ok := f.answers.Take(run.Caller)
			if !ok {
				exceeded = &state
			}
			return ok
		},
	})
	resp.Data.Classification = &resp.Decision.Classification // unfiltered: the filter copies it from the decision
	if resp.Data.Degraded && errors.Is(ctx.Err(), context.Canceled) {
		resp.Status = contract.StatusCancelled
	}
	if exceeded == nil || run.async {
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

// unlimitedAnswers is the AnswerLimit of a router without one.
type unlimitedAnswers struct{}

func (unlimitedAnswers) Take(*contract.Caller) (contract.Limit, bool) { return contract.Limit{}, true }

// previewTickets is for a router without a store: it shows the ticket that the
// demand would be added to.
type previewTickets struct{}

func (previewTickets) Propose(_ context.Context, d *tickets.Demand) (*contract.Proposal, error) {
	return tickets.Preview(d), nil
}

func (previewTickets) EraseRequest(context.Context, string) error { return nil }

// selectPolicy returns the fallback policy of the catalogue. If the catalogue leaves the
// choice, requests are answered directly if a model classifies them anyway.
func (f *fallbackStage) selectPolicy(v *View) string {
	switch p := v.Catalogue.Fallback.Policy; {
	case p == capabilities.FallbackAnswer, p == capabilities.FallbackAuto && f.answerByDefault:
		return capabilities.FallbackAnswer
	case p == capabilities.FallbackPropose:
		return p
	}
	return capabilities.FallbackUnsupported
}

// checkPolicy rejects a policy that allows more than that of the catalogue. A
// request may always ask for B.
func (f *fallbackStage) checkPolicy(v *View, requested string, e *contract.Error) {
	if requested != capabilities.FallbackUnsupported && requested != f.selectPolicy(v) {
		e.Add("/options/fallback", "policy "+requested+" is not the registry's: leave it out, or use B")
	}
}
