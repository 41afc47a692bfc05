package httptarget

import (
	"context"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

const (
	maxStops    = 64 // on their way at the same time
	stopTimeout = 2 * time.Second
)

// stopper tells agents to stop, in the background and as well as it can:
// nobody's answer waits for it.
type stopper struct {
	transport http.RoundTripper
	group     *run.Group
	places    chan struct{}
}

func newStopper(transport http.RoundTripper) *stopper {
	return &stopper{
		transport: transport,
		group:     run.New(context.Background()), // outlives the request it is about
		places:    make(chan struct{}, maxStops),
	}
}

// tell sends the request unless too many are on their way: an agent that does
// not hear of it stops at the deadline.
func (s *stopper) tell(req *http.Request) {
	select {
	case s.places <- struct{}{}:
	default:
		return
	}
	s.group.Go("stop task", func(ctx context.Context) error {
		defer func() { <-s.places }()
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		if resp, err := s.transport.RoundTrip(req.WithContext(ctx)); err == nil {
			_ = resp.Body.Close() // whatever it says
		}
		return nil
	})
}

// wait returns when no request is on its way.
func (s *stopper) wait() { _ = s.group.Wait() } // they return nil
