package audit

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// knownSize is the capacity of knownRequests: about 20 MiB when full.
const knownSize = 1_000_000

// knownRequests is the set of requests with records of this process, as hashes in
// two generations. It avoids a search for a request without records. A hash
// collision can only cause a needless search.
type knownRequests struct {
	seed maphash.Seed
	half int // capacity of one generation

	mu       sync.Mutex
	young    requestSet
	old      requestSet // full; dropped when young is full
	disabled bool       // another process writes, too: nothing is known
}

// requestSet contains the requests with records since a time.
type requestSet struct {
	ids   map[uint64]struct{}
	since time.Time
}

func newKnownRequests(size int, now time.Time) *knownRequests {
	return &knownRequests{
		seed: maphash.MakeSeed(), half: max(1, size/2),
		young: requestSet{map[uint64]struct{}{}, now}, old: requestSet{nil, now},
	}
}

// addRecords adds the requests of records that are about to be written.
func (w *knownRequests) addRecords(list []indexedRecord, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range list {
		if p.id == "" || p.kind == KindAdmin || p.kind == KindFeedback {
			continue
		}
		id := maphash.String(w.seed, p.id)
		if _, ok := w.old.ids[id]; ok {
			continue
		}
		if _, ok := w.young.ids[id]; !ok && len(w.young.ids) == w.half {
			w.old, w.young = w.young, requestSet{map[uint64]struct{}{}, laterOf(now, w.young.since)}
		}
		w.young.ids[id] = struct{}{}
	}
}

// lookUp reports whether records of the request were written, and whether the set is
// complete for requests of its age.
func (w *knownRequests) lookUp(id string) (wrote, all bool) {
	born, ok := uuidTime(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	h := maphash.String(w.seed, id)
	_, young := w.young.ids[h]
	_, old := w.old.ids[h]
	// A record is never older than its request, except for clock differences.
	return young || old, ok && !w.disabled && born.After(w.old.since.Add(clockSlack))
}

// disable is called after another process has written to the chain.
func (w *knownRequests) disable() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disabled = true
}

// indexedRecord is what the indexes need of a record.
type indexedRecord struct {
	id   string
	kind Kind
	pos  uint64
	at   time.Time
}

// indexSize is the number of requests that are found without a search. The index is
// a cache of what was written since the start.
const indexSize = 16 << 10

// recentIndex maps recent requests to the places of their records.
type recentIndex struct {
	mu    sync.Mutex
	refs  map[string]requestRefs
	order []string // ring buffer: first in, first out
	next  int
}

// requestRefs are the places of the records of one request.
type requestRefs struct {
	decision, outcome recordRef
	calls             []recordRef // of tools
}

// recordRef is the place of a record. The zero value is none.
type recordRef struct {
	chain  *storedChain
	seq    uint64 // of the message of the batch as first written
	number uint64 // of the batch, by which it is found after it was rewritten
	pos    uint64
}

func newIndex(size int) *recentIndex {
	return &recentIndex{refs: make(map[string]requestRefs), order: make([]string, size)}
}

func (x *recentIndex) addBatch(c *storedChain, b *batch, seq uint64, list []indexedRecord) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range list {
		if p.id == "" || p.kind == KindAdmin || p.kind == KindFeedback { // these are not looked up
			continue
		}
		r, known := x.refs[p.id]
		if !known {
			delete(x.refs, x.order[x.next])
			x.order[x.next] = p.id
			x.next = (x.next + 1) % len(x.order)
		}
		at := recordRef{chain: c, seq: seq, number: b.number, pos: p.pos}
		switch p.kind {
		case KindDecision:
			r.decision = at
		case KindToolCall, KindRun:
			r.calls = append(slices.Clip(r.calls), at) // lookUp has returned the old slice
		default:
			r.outcome = at
		}
		x.refs[p.id] = r
	}
}

func (x *recentIndex) lookUp(id string) requestRefs {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.refs[id]
}
