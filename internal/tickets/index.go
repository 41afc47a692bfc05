package tickets

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/pagination"
	"github.com/caprouter/caprouter/internal/quota"
)

// ticketIndex is the in-memory index of a Service: all tickets, and the words of the
// open ones. It is derived from the bucket.
type ticketIndex struct {
	mu      sync.Mutex
	entries map[string]indexEntry
	words   map[ticketOwner]*lexical.ClusterIndex // by owner, of open tickets
	open    int
	openOf  map[quota.Owner]int // by payer, without zeros
}

// indexEntry describes one ticket.
type indexEntry struct {
	id       string
	of       ticketOwner
	payer    quota.Owner
	status   contract.TicketStatus
	created  time.Time
	last     time.Time
	revision uint64
}

func (e *indexEntry) position() pagination.Position {
	return pagination.Position{Created: e.created, ID: e.id}
}

func newIndex() *ticketIndex {
	return &ticketIndex{entries: map[string]indexEntry{}, words: map[ticketOwner]*lexical.ClusterIndex{}, openOf: map[quota.Owner]int{}}
}

// put adds the ticket at a revision, unless a later one is known.
func (x *ticketIndex) put(r *ticketRecord, revision uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t, of := &r.Ticket, r.owner()
	if revision < x.entries[t.TicketID].revision {
		return
	}
	x.dropLocked(t.TicketID)
	x.entries[t.TicketID] = indexEntry{t.TicketID, of, r.Payer, t.Status, t.CreatedAt, t.LastAt, revision}
	if !r.isOpen() {
		return
	}
	x.open++
	x.openOf[r.Payer]++
	if x.words[of] == nil {
		x.words[of] = lexical.NewClusterIndex()
	}
	x.words[of].Set(t.TicketID, r.exampleTexts())
}

// ids returns the ids of all tickets.
func (x *ticketIndex) ids() map[string]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	ids := make(map[string]bool, len(x.entries))
	for id := range x.entries {
		ids[id] = true
	}
	return ids
}

// remove removes a ticket that was deleted.
func (x *ticketIndex) remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropLocked(id)
}

func (x *ticketIndex) dropLocked(id string) {
	old, ok := x.entries[id]
	if !ok {
		return
	}
	delete(x.entries, id)
	if old.status != contract.TicketOpen {
		return
	}
	x.open--
	if x.openOf[old.payer]--; x.openOf[old.payer] == 0 {
		delete(x.openOf, old.payer)
	}
	words := x.words[old.of]
	if words.Remove(id); words.Len() == 0 {
		delete(x.words, old.of)
	}
}

// findNearest returns the owner's open ticket that is most similar to the text, or
// "" if no ticket has a word of it.
func (x *ticketIndex) findNearest(of ticketOwner, text string) (id string, similarity float64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if words := x.words[of]; words != nil {
		return words.Nearest(text)
	}
	return "", 0
}

// countOpen returns how many tickets of the payer are open.
func (x *ticketIndex) countOpen(payer quota.Owner) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.openOf[payer]
}

// checkFull reports whether this many tickets are open, and returns the open ticket
// with the oldest last request.
func (x *ticketIndex) checkFull(most int) (stalest string, full bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open < most {
		return "", false
	}
	var oldest indexEntry
	for _, e := range x.entries {
		if e.status == contract.TicketOpen && (oldest.id == "" || cmp.Or(e.last.Compare(oldest.last), cmp.Compare(e.id, oldest.id)) < 0) {
			oldest = e
		}
	}
	return oldest.id, true
}

// listNewest returns the selected tickets, newest first.
func (x *ticketIndex) listNewest(keep func(*indexEntry) bool) []indexEntry {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []indexEntry
	for _, e := range x.entries {
		if keep(&e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b indexEntry) int { return a.position().Compare(b.position()) })
	return all
}
