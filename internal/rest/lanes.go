package rest

import "sync/atomic"

// lane bounds how many requests of a kind are worked on at a time. Kinds that
// wait for each other do not share one: a full lane must leave room for what
// empties it.
type lane int

const (
	laneWork    lane       = iota // requests, which may take minutes: Config.MaxInFlight
	laneRelief                    // what brings them to an end: results of agents, cancels
	laneChecks                    // checks of a registry, which take seconds and memory
	laneReaders                   // readers of events, who do next to nothing for very long: Config.MaxReaders
	laneFree                      // answered whatever happens
	laneCount   = laneFree        // the lanes before it have a bound
)

// maxChecks bounds laneChecks: one of a megabyte takes some fifty while it runs.
const maxChecks = 4

// maxRelief bounds laneRelief. Each may hold a result of maxResultBytes.
const maxRelief = 128

// places are those of one lane.
type places struct {
	taken atomic.Int64
	most  int
}

// full reports whether a request would find no place in the lane now. It is asked
// before anything is done for one, so that to shed it costs next to nothing.
func (s *Server) full(l lane) bool {
	return l != laneFree && s.lanes[l].taken.Load() >= int64(s.lanes[l].most)
}

// enter gives a request a place in the lane, if there is one.
func (s *Server) enter(x *exchange, l lane) bool {
	if l == laneFree {
		return true
	}
	p := &s.lanes[l]
	taken := p.taken.Add(1)
	if taken > int64(p.most) || s.shared(l, x) && !s.shares.take(x.caller, int(taken), p.most) {
		p.taken.Add(-1)
		return false
	}
	x.lane = l
	if l == laneWork && s.deps.Meter != nil {
		s.deps.Meter.InFlight(1)
	}
	return true
}

// shared reports whether callers share the lane: those of a server that tells
// them apart.
func (s *Server) shared(l lane, x *exchange) bool {
	return l == laneWork && s.local == nil && x.caller != nil
}

// leave takes it back; one that has none is left alone.
func (s *Server) leave(x *exchange) {
	l := x.lane
	if l == laneFree {
		return
	}
	x.lane = laneFree
	if s.shared(l, x) {
		s.shares.give(x.caller)
	}
	s.lanes[l].taken.Add(-1)
	if l == laneWork && s.deps.Meter != nil {
		s.deps.Meter.InFlight(-1)
	}
}

// taken counts the requests that are being worked on.
func (s *Server) taken() (n int64) {
	for i := range s.lanes {
		n += s.lanes[i].taken.Load()
	}
	return n
}
