package replicas

import (
	"encoding/json"
	"time"
)

const (
	// beatInterval is the pause between two beats.
	beatInterval = 700 * time.Millisecond
	// deadAfter is how long a replica may be silent.
	deadAfter = 3 * time.Second
	// maxGap is how long this process may be without an acknowledged beat before the
	// silence of all others counts from the beginning. It is shorter than deadAfter,
	// because the others wait for the same store.
	maxGap = 2 * time.Second
)

// row is what a replica writes with each beat. The key is its name.
type row struct {
	Owner   string          `json:"owner"` // of the process
	Version string          `json:"version,omitempty"`
	Started time.Time       `json:"started"`
	Beat    uint64          `json:"beat"`
	Left    bool            `json:"left,omitzero"` // it was closed
	Keys    json.RawMessage `json:"keys,omitempty"`
}

// peer is another replica as this process sees it.
type peer struct {
	row    row
	silent time.Duration // counted since its last beat
	live   bool
}

// tracker decides which replicas are live. It has no clock: observe takes the time,
// as a duration since any fixed moment of a monotonic clock.
type tracker struct {
	self   string // name of this replica, which is not among the peers
	peers  map[string]*peer
	before time.Duration // when the last reading ended
}

func newTracker(self string) *tracker { return &tracker{self: self, peers: map[string]*peer{}} }

// observe takes the rows, which were read from begin to end after a beat of this process
// was acknowledged, and returns the owners that are dead now.
//
// The time from the end of the reading before to the begin of this one counts for each
// replica whose row is the same, so that a replica is dead only if it had no beat for
// at least deadAfter.
func (t *tracker) observe(begin, end time.Duration, rows map[string]row) (dead []string) {
	elapsed := begin - t.before
	t.before = end
	if elapsed > maxGap {
		elapsed = 0
		for _, p := range t.peers {
			p.silent = 0
		}
	}
	for name, p := range t.peers {
		r, exists := rows[name]
		if !exists {
			r = p.row // it has expired, and counts as unchanged
		}
		if owner, ended := p.observe(&r, elapsed); ended {
			dead = append(dead, owner)
		}
		if !exists && !p.live {
			delete(t.peers, name)
		}
	}
	for name, r := range rows {
		if name != t.self && t.peers[name] == nil {
			t.peers[name] = &peer{row: r, live: !r.Left}
		}
	}
	return dead
}

// observe takes the row after the counted time. It returns the owner of the row before,
// and whether that has ended now.
func (p *peer) observe(r *row, elapsed time.Duration) (owner string, ended bool) {
	before, owner := p.live, p.row.Owner
	switch {
	case r.Owner != owner || r.Beat != p.row.Beat || r.Left != p.row.Left:
		p.row, p.silent, p.live = *r, 0, !r.Left
	case p.live:
		p.silent += elapsed
		p.live = p.silent < deadAfter
	}
	return owner, before && (!p.live || r.Owner != owner)
}
