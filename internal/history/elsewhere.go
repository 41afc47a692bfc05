package history

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/store"
)

// Timing of requests that another process executes in memory.
const (
	cancelPatience = 3 * time.Second
	endPoll        = 100 * time.Millisecond
	maxEndPoll     = 2 * time.Second
)

// cancelElsewhere cancels a synchronous request that another process executes in memory.
// It sends that process a message, which may be lost: if the request does not end in time,
// the error is overloaded. A request that is stored meanwhile is cancelled in its
// record.
func (s *Service) cancelElsewhere(ctx context.Context, id string) (*contract.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, cancelPatience)
	defer cancel()
	s.cfg.Peers.Cancel(id)
	found, err := s.awaitEnd(ctx, id)
	switch {
	case err == nil && found.record != nil:
		return s.cfg.Canceller.CancelStored(ctx, id, cancelDetail)
	case err == nil:
		return found.response()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: "another replica executes the request and has not confirmed the cancellation; try again"}
	}
	return nil, err
}

// awaitEnd waits until a request that another process executes in memory has ended or
// is stored.
func (s *Service) awaitEnd(ctx context.Context, id string) (*storedRequest, error) {
	backoff := resilience.Backoff{Min: endPoll, Max: maxEndPoll}
	for {
		if !backoff.Sleep(ctx) {
			return nil, ctx.Err()
		}
		found, err := s.lookup(ctx, id, anyAge)
		if err != nil && !store.IsTemporary(err) || err == nil && !found.elsewhere {
			return found, err
		}
	}
}
