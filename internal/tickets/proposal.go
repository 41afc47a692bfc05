package tickets

import (
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

// assignment is the ticket assignment of a request.
type assignment struct {
	similarity float64 // to the nearest open ticket
	joined     bool
	stored     bool
	notStored  string // the reason if it is not stored
}

// Reasons why a request is not stored.
const (
	notStoredFull      = "The demand is not on record: too many tickets are open; ask the operator to close some"
	notStoredQuota     = "The demand is not on record: the share of the store for tickets is used up (store.tenant_share); close tickets"
	notStoredWordless  = "The demand is not on record: no word of the request says what it is about"
	notStoredNoService = "The demand is not on record: a running router with a data directory keeps tickets, and here is none"
)

// newProposal returns the proposal for the caller. Its suggestion names only agents,
// intents and domains that the caller may use. For a caller without access to
// tickets it is made of this request alone, so that it reveals nothing about other
// requests.
func (r *ticketRecord) newProposal(d *Demand, how assignment) *contract.Proposal {
	seen := d.Seen
	if seen == nil {
		seen = d.Unmet
	}
	from := r
	if !mayReadTickets(d.Unmet.Caller) {
		from = newRecord("", d)
		from.addRequest(&Demand{Unmet: seen, RequestID: d.RequestID, Locale: d.Locale, DataClasses: d.DataClasses}, 1, r.Ticket.LastAt)
	}
	t := from.Ticket
	t.Reasons = concealForbidden(t.Reasons)
	s := fallback.Propose(seen, &t, from.dataKinds())
	p := &contract.Proposal{
		Joined: how.joined, Count: r.Ticket.Count, Similarity: roundSimilarity(how.similarity), Threshold: JoinThreshold,
		Detail:        s.Detail + ". " + how.describe(r.Ticket.Count),
		SuggestedYAML: s.SuggestedYAML, Requirements: s.Requirements, Risks: s.Risks, NearestReading: s.NearestReading,
	}
	if how.stored {
		p.TicketID = r.Ticket.TicketID
	}
	return p
}

// describe returns a sentence about the assignment, with the similarity.
func (how assignment) describe(count int) string {
	against := fmt.Sprintf("%.2f, and %.2f is needed", how.similarity, JoinThreshold)
	switch {
	case how.notStored != "":
		return how.notStored
	case how.joined && how.stored:
		return fmt.Sprintf("The request was added to a ticket of %d similar requests (similarity %s)", count, against)
	case how.joined:
		return fmt.Sprintf("It would join a ticket, as the request number %d (similarity %s)", count, against)
	case how.stored && how.similarity > 0:
		return fmt.Sprintf("The request opened a new ticket: the most similar open ticket reaches %s", against)
	case how.stored:
		return "The request opened a new ticket: no open ticket is similar"
	}
	return "It would open a new ticket"
}

func mayReadTickets(c *contract.Caller) bool {
	return c != nil && (c.HasScope(contract.ScopeTickets) || c.SeesAll())
}
