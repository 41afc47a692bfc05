package tickets

import (
	"context"
	"errors"
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/store"
)

func noSuchTicket() error {
	return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such ticket"}
}

func sees(caller *contract.Caller, r *record) bool {
	return holderOf(caller) == r.holder() || caller.SeesAll()
}

// Tickets lists those of the caller's tenant, or all for who sees all.
func (d *Desk) Tickets(ctx context.Context, q contract.TicketQuery, caller *contract.Caller) (*contract.TicketPage, error) {
	return d.list(ctx, ListQuery{
		Tenant: caller.Tenant, Issuer: caller.Issuer, AllTenants: caller.SeesAll(), Status: q.Status, Limit: q.Limit, Cursor: q.Cursor,
	}, func(r *record) contract.Ticket { return r.shown(caller, d.known()) })
}

// Ticket returns one the caller may see. What it may not see is not there.
func (d *Desk) Ticket(ctx context.Context, id string, caller *contract.Caller) (*contract.Ticket, error) {
	if !validID(id) {
		return nil, noSuchTicket()
	}
	r, _, err := d.load(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !sees(caller, r):
		return nil, noSuchTicket()
	case err != nil:
		return nil, err
	}
	t := r.shown(caller, d.known())
	return &t, nil
}

// CloseTicket closes one the caller may see.
func (d *Desk) CloseTicket(ctx context.Context, id, note string, caller *contract.Caller) (*contract.Ticket, error) {
	if _, err := d.Ticket(ctx, id, caller); err != nil {
		return nil, err
	}
	if _, err := d.Close(ctx, id, note); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, noSuchTicket()
		}
		return nil, err
	}
	return d.Ticket(ctx, id, caller)
}

// known is the registry that says which agents declare what; nil where there is
// none yet.
func (d *Desk) known() *capabilities.Snapshot {
	if d.cfg.Registry != nil {
		return d.cfg.Registry()
	}
	if u := d.registry.Load(); u != nil {
		return u.Registry
	}
	return nil
}

// shown is the ticket as the caller may see it. A ticket gathers the requests of a
// tenant, whose callers may use different agents: who may not use them all gets
// the suggestion made anew, of what it may know.
func (r *record) shown(caller *contract.Caller, registry *capabilities.Snapshot) contract.Ticket {
	t := r.Ticket
	if caller.AllAgents || caller.SeesAll() {
		return t
	}
	if registry == nil {
		registry = &capabilities.Snapshot{Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback()}
	}
	intents, domains := declared(registry, caller)
	t.Intents, t.Domains = visible(t.Intents, intents, t.Count), visible(t.Domains, domains, t.Count)
	u := fallback.Unmet{Registry: registry, Caller: caller, Decision: &contract.Decision{
		Classification: contract.Classification{Intent: contract.Unknown}, Candidates: nearestOf(&t),
	}}
	s := fallback.Propose(&u, &t, r.kinds())
	t.SuggestedYAML, t.Requirements, t.Risks, t.Nearest = s.SuggestedYAML, s.Requirements, s.Risks, s.Nearest
	return t
}

// declared are the intents and domains of the agents the caller may see.
func declared(registry *capabilities.Snapshot, caller *contract.Caller) (intents, domains []string) {
	for _, agent := range registry.Agents {
		if caller.MaySee(agent.ID) {
			intents = append(intents, agent.Match.Intent...)
			domains = append(domains, agent.Match.Domains...)
		}
	}
	return intents, slices.DeleteFunc(domains, func(d string) bool { return d == contract.AnyDomain })
}

// visible counts under unknown what is not among the names, up to most: one request
// may have several of them.
func visible(counts map[string]int, names []string, most int) map[string]int {
	shown := make(map[string]int, len(counts))
	for name, n := range counts {
		if !slices.Contains(names, name) {
			name = contract.Unknown
		}
		shown[name] = min(shown[name]+n, most)
	}
	return shown
}

// nearestOf are the near misses the ticket knows, as those of a decision.
func nearestOf(t *contract.Ticket) (candidates []contract.Candidate) {
	for _, n := range t.Nearest {
		candidates = append(candidates, contract.Candidate{AgentID: n.AgentID, Score: n.Score, Gates: n.Gates})
	}
	return candidates
}
