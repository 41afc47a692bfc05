package audit

import "sync"

// indexSize is how many requests are found without a search. It is a cache of
// what this process wrote, nothing more.
const indexSize = 16 << 10

// index knows where the records of recent requests are.
type index struct {
	mu    sync.Mutex
	refs  map[string]refs
	order []string // ring: who came first goes first
	next  int
}

// refs are the places of the records of one request.
type refs struct{ decision, outcome ref }

// ref is the place of a record. The zero ref is none.
type ref struct {
	seq    uint64 // of the message, as it was written
	number uint64 // of the batch, by which it is found after a rewrite
	pos    uint64
}

func newIndex(size int) *index {
	return &index{refs: make(map[string]refs), order: make([]string, size)}
}

func (x *index) add(b *batch, seq uint64, list []*pending) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, p := range list {
		if p.id == "" || p.kind == KindAdmin {
			continue
		}
		r, known := x.refs[p.id]
		if !known {
			delete(x.refs, x.order[x.next])
			x.order[x.next] = p.id
			x.next = (x.next + 1) % len(x.order)
		}
		at := ref{seq: seq, number: b.number, pos: b.first + uint64(i)}
		if p.kind == KindDecision {
			r.decision = at
		} else {
			r.outcome = at
		}
		x.refs[p.id] = r
	}
}

func (x *index) get(id string) refs {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.refs[id]
}
