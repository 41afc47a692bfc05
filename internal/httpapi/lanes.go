package httpapi

import "sync/atomic"

// lane bounds how many requests of a kind are worked on at a time. Kinds that
// wait for each other do not share one: a full lane must leave room for what
// empties it.
type lane int

const (
	laneWork    lane       = iota // requests, which may take minutes: Config.MaxInFlight
	laneRelief                    // what brings them to an end: results of agents, cancels
	laneReaders                   // readers of events, who do next to nothing for very long: Config.MaxReaders
	laneFree                      // answered whatever happens
	laneCount   = laneFree        // the lanes before it have a bound
)

// maxRelief bounds laneRelief. Each may hold a result of maxResultBytes.
const maxRelief = 128

// places are those of one lane.
type places struct {
	taken atomic.Int64
	most  int
}

// enter takes a place in the lane; each true is followed by one leave.
func (s *Server) enter(l lane) bool {
	p := &s.lanes[l]
	if p.taken.Add(1) > int64(p.most) {
		p.taken.Add(-1)
		return false
	}
	if l == laneWork && s.deps.Meter != nil {
		s.deps.Meter.InFlight(1)
	}
	return true
}

func (s *Server) leave(l lane) {
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
