package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/tickets"
	"github.com/caprouter/caprouter/router/plan"
)

// fallBack answers a request nobody may serve, by the registry's policy
// (003 §5). An error means that the ticket of policy C could not be stored, or
// that the caller may have no more answers of policy A for now.
func (r *Router) fallBack(ctx context.Context, resp *contract.Response, j *job, p *plan.Plan) error {
	policy := r.policy(j.view)
	if j.req.Options.Fallback != nil {
		policy = *j.req.Options.Fallback // accept has seen that it narrows
	}
	resp.Decision.FallbackUsed = &policy
	unmet := &fallback.Unmet{
		Catalogue: j.view.Catalogue,
		Lexical:   j.view.Lexical,
		Caller:    j.caller,
		Prompt:    j.prompt,
		OnlyAgent: j.only,
		Decision:  resp.Decision,
		Reason:    p.Reason,
	}
	seen := unmet.VisibleTo(r.visibilityFilter(j.caller)) // its texts must not reveal what is hidden
	switch policy {
	case capabilities.FallbackAnswer:
		return r.answer(ctx, resp, j, seen)
	case capabilities.FallbackPropose:
		return r.propose(ctx, resp, j, unmet, seen)
	}
	resp.Status = contract.StatusUnsupported
	resp.Data.Mode = contract.DataUnsupported
	resp.Data.Unsupported = fallback.Unsupported(seen)
	return nil
}

// propose puts the demand into a ticket.
func (r *Router) propose(ctx context.Context, resp *contract.Response, j *job, unmet, seen *fallback.Unmet) error {
	resp.Status = contract.StatusProposed
	resp.Data.Mode = contract.DataAgentProposal
	demand := &tickets.Demand{
		Unmet: unmet, Seen: seen, RequestID: j.req.RequestID, Locale: j.locale, DataClasses: j.masking.Kinds(), DryRun: j.dryRun(),
	}
	if r.keep.Tickets == nil {
		resp.Data.Proposal = tickets.Preview(demand)
		return nil
	}
	proposal, err := r.keep.Tickets.Propose(ctx, demand)
	if err != nil {
		return r.storeTrouble(ctx, "the ticket cannot be stored", err)
	}
	resp.Data.Proposal = proposal
	return nil
}

// answer lets the model answer the caller directly, within bounds. A dry run
// does not ask it. Who left before there was an answer has none. An error means
// that the caller waits and has reached its limit.
func (r *Router) answer(ctx context.Context, resp *contract.Response, j *job, unmet *fallback.Unmet) error {
	resp.Status = contract.StatusCompleted
	if j.dryRun() {
		resp.Data.Mode = contract.DataServerFallback
		resp.Data.Classification = &resp.Decision.Classification
		resp.Data.Unsupported = fallback.Unsupported(unmet)
		return nil
	}
	allowed := allowance{limit: r.cfg.Answers, caller: j.caller}
	resp.Data = fallback.Answer(ctx, r.cfg.Model, unmet, fallback.AnswerInput{
		Prompt: j.prompt, History: j.history, Locale: j.locale, Now: r.cfg.Now,
		Restore:    func(text string) string { return j.masking.RestoreText(text, nil) },
		TakeAnswer: allowed.take,
	})
	resp.Data.Classification = &resp.Decision.Classification // on record is the whole of it
	if resp.Data.Degraded && errors.Is(ctx.Err(), context.Canceled) {
		resp.Status = contract.StatusCancelled
	}
	return allowed.refusal(j)
}

// policy is the registry's. Where it leaves the choice, a request is answered directly if a model classifies anyway.
func (r *Router) policy(v *View) string {
	switch p := v.Catalogue.Fallback.Policy; {
	case p == capabilities.FallbackAnswer, p == capabilities.FallbackAuto && r.cfg.AnswerByDefault:
		return capabilities.FallbackAnswer
	case p == capabilities.FallbackPropose:
		return p
	}
	return capabilities.FallbackUnsupported
}

// checkPolicy refuses a wish that widens: B may always be asked for, any other
// policy only when it holds anyway.
func (r *Router) checkPolicy(v *View, wish string, e *contract.Error) {
	if wish != capabilities.FallbackUnsupported && wish != r.policy(v) {
		e.Add("/options/fallback", "policy "+wish+" is not the registry's: leave it out, or say B")
	}
}
