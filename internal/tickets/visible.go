package tickets

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/visibility"
)

func errTicketNotFound() error {
	return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such ticket"}
}

// Tickets lists those of the caller's tenant, or all for who sees all.
func (d *Service) Tickets(ctx context.Context, q contract.TicketQuery, caller *contract.Caller) (*contract.TicketPage, error) {
	return d.listPage(ctx, ListQuery{
		Tenant: caller.Tenant, Issuer: caller.Issuer, AllTenants: caller.SeesAll(), Status: q.Status, Limit: q.Limit, Cursor: q.Cursor,
	}, func(r *ticketRecord) contract.Ticket { return r.visibleTo(caller, d.currentRegistry()) })
}

// Ticket returns one the caller may see. What it may not see is not there.
func (d *Service) Ticket(ctx context.Context, id string, caller *contract.Caller) (*contract.Ticket, error) {
	if !validID(id) {
		return nil, errTicketNotFound()
	}
	r, err := d.loadTicket(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !visibility.MaySeeTenant(caller, &contract.Caller{Tenant: r.Ticket.Tenant, Issuer: r.Issuer}):
		return nil, errTicketNotFound()
	case err != nil:
		return nil, err
	}
	t := r.visibleTo(caller, d.currentRegistry())
	return &t, nil
}

// CloseTicket closes one the caller may see.
func (d *Service) CloseTicket(ctx context.Context, id, note string, caller *contract.Caller) (*contract.Ticket, error) {
	if _, err := d.Ticket(ctx, id, caller); err != nil {
		return nil, err
	}
	if _, err := d.Close(ctx, id, note); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, errTicketNotFound()
		}
		return nil, err
	}
	return d.Ticket(ctx, id, caller)
}

// currentRegistry is the registry that says which agents declare what; nil where there is
// none yet.
func (d *Service) currentRegistry() *capabilities.Catalogue {
	if d.cfg.Catalogue != nil {
		return d.cfg.Catalogue()
	}
	if u := d.registry.Load(); u != nil {
		return u.Catalogue
	}
	return nil
}

// visibleTo is the ticket as the caller may see it. A ticket gathers the requests of a
// tenant, whose callers may use different agents: who may not use them all gets
// the suggestion made anew, of what it may know.
func (r *ticketRecord) visibleTo(caller *contract.Caller, registry *capabilities.Catalogue) contract.Ticket {
	t := r.Ticket
	if registry == nil {
		registry = &capabilities.Catalogue{Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback()}
	}
	visible := visibility.Visible(registry, caller)
	if visible.All() {
		return t
	}
	t.Intents = visibility.CountVisible(t.Intents, visible.HasIntent, t.Count)
	t.Domains = visibility.CountVisible(t.Domains, visible.HasDomain, t.Count)
	u := fallback.Unmet{Catalogue: registry, Caller: caller, Decision: &contract.Decision{
		Classification: contract.Classification{Intent: contract.Unknown}, Candidates: nearestCandidates(&t),
	}}
	s := fallback.Propose(&u, &t, r.dataKinds())
	t.SuggestedYAML, t.Requirements, t.Risks, t.Nearest = s.SuggestedYAML, s.Requirements, s.Risks, s.Nearest
	return t
}

// nearestCandidates are the near misses the ticket knows, as those of a decision.
func nearestCandidates(t *contract.Ticket) (candidates []contract.Candidate) {
	for _, n := range t.Nearest {
		candidates = append(candidates, contract.Candidate{AgentID: n.AgentID, Score: n.Score, Gates: n.Gates})
	}
	return candidates
}
