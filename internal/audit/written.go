package audit

import (
	"hash/maphash"
	"sync"
	"time"
)

// writtenSize is how many requests are known to have records, in both halves
// together: some 20 MiB when full.
const writtenSize = 1_000_000

// written knows which requests this process wrote records of, so that one that
// never was is not searched for. It may take one for another that was written. It
// never takes one that was written, and came since it knows all, for none.
type written struct {
	seed maphash.Seed
	half int // how many one half holds

	mu    sync.Mutex
	young known
	old   known // full; goes when young is
	blind bool  // somebody else writes, too: nothing is known
}

// known are requests that got records from a time on.
type known struct {
	ids   map[uint64]struct{}
	since time.Time
}

func newWritten(size int, now time.Time) *written {
	return &written{
		seed: maphash.MakeSeed(), half: max(1, size/2),
		young: known{map[uint64]struct{}{}, now}, old: known{nil, now},
	}
}

// add notes the requests of records that are about to be written.
func (w *written) add(list []*pending, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range list {
		if p.id == "" || p.kind == KindAdmin {
			continue
		}
		id := maphash.String(w.seed, p.id)
		if _, ok := w.old.ids[id]; ok {
			continue
		}
		if _, ok := w.young.ids[id]; !ok && len(w.young.ids) == w.half {
			w.old, w.young = w.young, known{map[uint64]struct{}{}, now}
		}
		w.young.ids[id] = struct{}{}
	}
}

// knows reports whether records of the request were written, as far as is known,
// and whether all is known of requests as young as this one.
func (w *written) knows(id string) (wrote, all bool) {
	born, ok := timeOf(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	h := maphash.String(w.seed, id)
	_, young := w.young.ids[h]
	_, old := w.old.ids[h]
	// A record is never older than its request, but for the clocks.
	return young || old, ok && !w.blind && born.After(w.old.since.Add(clockSlack))
}

// giveUp is called when another process writes the same chain.
func (w *written) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blind = true
}
