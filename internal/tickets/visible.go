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

// Tickets returns a page of the tickets of the caller's tenant, or of all tenants
// for a caller that may see all.
func (s *Service) Tickets(ctx context.Context, q contract.TicketQuery, caller *contract.Caller) (*contract.TicketPage, error) {
	return s.listPage(ctx, ListQuery{
		Tenant: caller.Tenant, Issuer: caller.Issuer, AllTenants: caller.SeesAll(), Status: q.Status, Limit: q.Limit, Cursor: q.Cursor,
	}, func(r *ticketRecord) contract.Ticket { return r.visibleTo(caller, s.currentRegistry()) })
}

// Ticket returns a ticket that is visible to the caller, or not_found.
func (s *Service) Ticket(ctx context.Context, id string, caller *contract.Caller) (*contract.Ticket, error) {
	if !store.ValidID(id) {
		return nil, errTicketNotFound()
	}
	r, err := s.loadTicket(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !visibility.MaySeeTenant(caller, &contract.Caller{Tenant: r.Ticket.Tenant, Issuer: r.Issuer}):
		return nil, errTicketNotFound()
	case err != nil:
		return nil, err
	}
	t := r.visibleTo(caller, s.currentRegistry())
	return &t, nil
}

// CloseTicket closes a ticket that is visible to the caller. It reports whether this call closed
// it: a ticket that was closed before stays as it is.
func (s *Service) CloseTicket(ctx context.Context, id, note string, caller *contract.Caller) (t *contract.Ticket, closed bool, err error) {
	if _, err := s.Ticket(ctx, id, caller); err != nil {
		return nil, false, err
	}
	r, closed, err := s.closeTicket(ctx, id, note)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, false, errTicketNotFound()
	case err != nil:
		return nil, false, err
	}
	visible := r.visibleTo(caller, s.currentRegistry())
	return &visible, closed, nil
}

// currentRegistry returns the registry for suggestions, or nil if there is none yet.
func (s *Service) currentRegistry() *capabilities.Catalogue {
	if s.cfg.Catalogue != nil {
		return s.cfg.Catalogue()
	}
	if u := s.registry.Load(); u != nil {
		return u.Catalogue
	}
	return nil
}

// visibleTo applies the visibility filter. A ticket contains requests of all callers
// of a tenant, who may use different agents: a caller that may not use all agents
// gets a suggestion from the agents it may use.
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
	t.Reasons = concealForbidden(t.Reasons)
	t.Domains = visibility.CountVisible(t.Domains, visible.HasDomain, t.Count)
	u := fallback.Unmet{Catalogue: registry, Caller: caller, Decision: &contract.Decision{
		Classification: contract.Classification{Intent: contract.Unknown}, Candidates: nearestCandidates(&t),
	}}
	s := fallback.Propose(&u, &t, r.dataKinds())
	t.SuggestedYAML, t.Requirements, t.Risks, t.Nearest = s.SuggestedYAML, s.Requirements, s.Risks, s.Nearest
	t.NearestReading = s.NearestReading
	return t
}

// nearestCandidates returns the near misses of the ticket as candidates of a
// decision.
func nearestCandidates(t *contract.Ticket) (candidates []contract.Candidate) {
	for _, n := range t.Nearest {
		candidates = append(candidates, contract.Candidate{AgentID: n.AgentID, Score: n.Score, Gates: n.Gates})
	}
	return candidates
}
