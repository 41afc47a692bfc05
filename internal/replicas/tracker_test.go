package replicas

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// process is one replica of the model.
type process struct {
	name   string
	offset time.Duration // of its clock
	row    row
	acked  time.Duration // its last beat

	tracker *tracker
	at      time.Duration // of its next step
	step    func()
	running bool
	began   time.Duration            // start of the reading, by its clock
	rows    map[string]row           // read so far
	silence map[string]time.Duration // of each owner at the reading
}

// model simulates processes that send heartbeats to one store and are delayed, suspended,
// killed and restarted, while the store sometimes rejects writes.
type model struct {
	t         *testing.T
	seed      uint64
	rng       *rand.Rand
	now       time.Duration
	calm      bool // no more failures
	downUntil time.Duration
	rows      map[string]row // of the store
	processes []*process
	owners    int
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), rows: map[string]row{}}
	for i := range 2 + m.rng.IntN(3) {
		p := &process{name: fmt.Sprint("r", i), offset: m.upTo(time.Hour), at: m.upTo(5 * time.Second)}
		p.step = func() { m.start(p) }
		m.processes = append(m.processes, p)
	}
	return m
}

// upTo returns a random duration; short ones are more frequent.
func (m *model) upTo(limit time.Duration) time.Duration {
	x := m.rng.Float64()
	return time.Duration(x * x * float64(limit))
}

// oneIn reports true once in n calls on average.
func (m *model) oneIn(n int) bool { return !m.calm && m.rng.IntN(n) == 0 }

// run executes the steps of all processes in the order of time.
func (m *model) run(until time.Duration) {
	for {
		p := slices.MinFunc(m.processes, func(a, b *process) int { return int(a.at - b.at) })
		if p.at > until {
			return
		}
		m.now = p.at
		p.step()
	}
}

func (m *model) next(p *process, pause time.Duration, step func(*process)) {
	p.at, p.step = m.now+pause, func() { step(p) }
}

func (m *model) start(p *process) {
	m.owners++
	p.row, p.tracker, p.running, p.acked = row{Owner: fmt.Sprint("owner", m.owners)}, newTracker(p.name), true, m.now
	m.beat(p)
}

// end ends a process, which is started again later.
func (m *model) end(p *process) {
	p.running = false
	m.next(p, m.upTo(10*time.Second), m.start)
}

func (m *model) beat(p *process) {
	switch {
	case m.oneIn(200): // killed
		m.end(p)
		return
	case m.oneIn(200) && m.now >= m.downUntil: // stopped
		p.row.Left = true
		m.rows[p.name] = p.row
		m.end(p)
		return
	case m.oneIn(100): // suspended
		m.next(p, m.upTo(8*time.Second), m.beat)
		return
	case m.oneIn(250):
		m.downUntil = m.now + m.upTo(10*time.Second)
	}
	if m.now < m.downUntil {
		m.next(p, m.upTo(500*time.Millisecond), m.beat)
		return
	}
	p.row.Beat++
	m.rows[p.name], p.acked = p.row, m.now
	m.next(p, m.delay(), m.beginReading)
}

func (m *model) delay() time.Duration {
	if m.calm {
		return m.upTo(50 * time.Millisecond)
	}
	return m.upTo(1500 * time.Millisecond)
}

func (m *model) beginReading(p *process) {
	p.began = m.now + p.offset
	m.next(p, m.delay(), m.read)
}

func (m *model) read(p *process) {
	p.rows, p.silence = maps.Clone(m.rows), map[string]time.Duration{}
	for _, other := range m.processes {
		p.silence[other.row.Owner] = m.now - other.acked
	}
	m.next(p, m.delay(), m.endReading)
}

// endReading checks that every process that is presumed ended has ended, or had no
// acknowledged heartbeat for the maximum silence of a replica.
func (m *model) endReading(p *process) {
	for _, owner := range p.tracker.observe(p.began, m.now+p.offset, p.rows) {
		for _, other := range m.processes {
			if other.running && other.row.Owner == owner && p.silence[owner] < deadAfter {
				m.t.Fatalf("seed %d: at %s, %s presumes that %s ended, which was silent for %s", m.seed, m.now, p.name, other.name, p.silence[owner])
			}
		}
	}
	m.next(p, beatInterval+m.delay(), m.beat)
}

func TestTracker_NeverPresumesActiveReplicaEnded(t *testing.T) {
	for seed := range uint64(10_000) {
		m := newModel(t, seed)
		m.run(30 * time.Second)
		// No more failures, except for one process, which does not start again.
		m.calm = true
		m.run(m.now + 15*time.Second)
		dead := m.processes[0]
		dead.running, dead.at = false, m.now+time.Hour
		m.run(m.now + 8*time.Second)
		for _, p := range m.processes[1:] {
			for _, other := range m.processes {
				if other == p {
					continue
				}
				if peer := p.tracker.peers[other.name]; peer == nil || peer.live != (other != dead) || peer.row.Owner != other.row.Owner {
					t.Fatalf("seed %d: %s reports %s as %+v, want it live only if it is not %s", seed, p.name, other.name, peer, dead.name)
				}
			}
		}
	}
}

// observed is the result of a tracker for one row.
type observed struct {
	begin, end time.Duration
	row        *row // nil = expired
	want       string
	live       bool
}

func TestTracker_Observe(t *testing.T) {
	const s = time.Second
	a, b := row{Owner: "a", Beat: 1}, row{Owner: "b", Beat: 1}
	left := row{Owner: "a", Beat: 2, Left: true}
	for name, steps := range map[string][]observed{
		"silent for three seconds": {
			{1 * s, 1 * s, &a, "", true}, {2 * s, 2 * s, &a, "", true}, {3 * s, 3 * s, &a, "", true}, {4 * s, 4 * s, &a, "a", false}, {5 * s, 5 * s, &a, "", false},
		},
		"reading time is ignored": {
			{1 * s, 2 * s, &a, "", true}, {3 * s, 4 * s, &a, "", true}, {5 * s, 6 * s, &a, "", true}, {7 * s, 7 * s, &a, "a", false},
		},
		"outage restarts the silence": {
			{1 * s, 1 * s, &a, "", true}, {3 * s, 3 * s, &a, "", true}, {9 * s, 9 * s, &a, "", true}, {10 * s, 10 * s, &a, "", true}, {12 * s, 12 * s, &a, "a", false},
		},
		"another process with the name": {{1 * s, 1 * s, &a, "", true}, {2 * s, 2 * s, &b, "a", true}},
		"closed":                        {{1 * s, 1 * s, &a, "", true}, {2 * s, 2 * s, &left, "a", false}},
		"closed before":                 {{1 * s, 1 * s, &left, "", false}, {2 * s, 2 * s, nil, "", false}},
		"row expired":                   {{1 * s, 1 * s, &a, "", true}, {2 * s, 2 * s, nil, "", true}, {4 * s, 4 * s, nil, "a", false}, {5 * s, 5 * s, &a, "", true}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker("self")
			for i, step := range steps {
				rows := map[string]row{"self": {Owner: "self"}}
				if step.row != nil {
					rows["other"] = *step.row
				}
				got := fmt.Sprint(tr.observe(step.begin, step.end, rows))
				if want := fmt.Sprint(slices.DeleteFunc([]string{step.want}, func(s string) bool { return s == "" })); got != want {
					t.Errorf("step %d: got %s ended, want %s", i, got, want)
				}
				if p := tr.peers["other"]; (p != nil && p.live) != step.live {
					t.Errorf("step %d: got live %v, want %v", i, p != nil && p.live, step.live)
				}
			}
			if tr.peers["self"] != nil {
				t.Error("got this process among the others")
			}
		})
	}
}
