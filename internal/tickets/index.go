package tickets

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// index is what a desk remembers of its tickets: which there are, and the words of
// the open ones. All of it can be had from the bucket again.
type index struct {
	mu    sync.Mutex
	known map[string]entry
	words map[holder]*lexical.ClusterIndex // of open tickets
	open  int
}

// entry is what is known of one ticket.
type entry struct {
	id       string
	of       holder
	status   contract.TicketStatus
	created  time.Time
	last     time.Time
	revision uint64
}

func newIndex() *index {
	return &index{known: map[string]entry{}, words: map[holder]*lexical.ClusterIndex{}}
}

// put takes the ticket as it was at a revision, unless a later one is known.
func (x *index) put(r *record, revision uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t, of := &r.Ticket, r.holder()
	if revision < x.known[t.TicketID].revision {
		return
	}
	x.drop(t.TicketID)
	x.known[t.TicketID] = entry{t.TicketID, of, t.Status, t.CreatedAt, t.LastAt, revision}
	if !r.open() {
		return
	}
	x.open++
	if x.words[of] == nil {
		x.words[of] = lexical.NewClusterIndex()
	}
	x.words[of].Set(t.TicketID, r.texts())
}

// remove forgets a ticket that is gone.
func (x *index) remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(id)
}

func (x *index) drop(id string) {
	old, ok := x.known[id]
	if !ok {
		return
	}
	delete(x.known, id)
	if old.status != contract.TicketOpen {
		return
	}
	x.open--
	words := x.words[old.of]
	if words.Remove(id); words.Len() == 0 {
		delete(x.words, old.of)
	}
}

// nearest is the holder's open ticket most like the text; "" when none has a word
// of it.
func (x *index) nearest(of holder, text string) (id string, similarity float64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if words := x.words[of]; words != nil {
		return words.Nearest(text)
	}
	return "", 0
}

// full reports whether most tickets are open, and which of them nothing was added
// to for the longest time.
func (x *index) full(most int) (stalest string, full bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open < most {
		return "", false
	}
	var oldest entry
	for _, e := range x.known {
		if e.status == contract.TicketOpen && (oldest.id == "" || cmp.Or(e.last.Compare(oldest.last), cmp.Compare(e.id, oldest.id)) < 0) {
			oldest = e
		}
	}
	return oldest.id, true
}

// list returns the tickets that keep wants, newest first.
func (x *index) list(keep func(*entry) bool) []entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []entry
	for _, e := range x.known {
		if keep(&e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, newestFirst)
	return all
}

func newestFirst(a, b entry) int {
	return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.id, a.id))
}
