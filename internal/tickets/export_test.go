package tickets

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// SetMaxOpen sets the limit of open tickets.
func (s *Service) SetMaxOpen(n int) { s.maxOpen = n }

// Close closes a ticket of any tenant.
func (s *Service) Close(ctx context.Context, id, note string) (*contract.Ticket, error) {
	r, _, err := s.closeTicket(ctx, id, note)
	if err != nil {
		return nil, err
	}
	return &r.Ticket, nil
}

// SetBackoff sets the pause between delivery attempts.
func (s *Service) SetBackoff(pause time.Duration) {
	s.queue.backoff = func(int) time.Duration { return pause }
}

// Pending returns the pending deliveries of a stored ticket.
func Pending(ctx context.Context, b *store.Bucket, id string) ([]string, error) {
	e, err := b.Get(ctx, keyPrefix+id)
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(id, e.Value)
	if err != nil {
		return nil, err
	}
	var events []string
	for i := range r.Pending {
		events = append(events, r.Pending[i].Event)
	}
	return events, nil
}

// Key returns the key of a ticket in the bucket.
func Key(id string) string { return keyPrefix + id }
