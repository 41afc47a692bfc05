package tickets

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// Outcomes of a delivery attempt.
const (
	DeliveredOK      = "ok"
	DeliveredFailed  = "failed"  // it will be retried
	DeliveredExpired = "expired" // it was retried for a day
	DeliveredGone    = "gone"    // the address answered 410: nothing is sent until the next start
)

// maxDeliveryAge is how long a notice is retried.
const maxDeliveryAge = 24 * time.Hour

// retryDelay returns the delay after this many failed attempts (backoff).
func retryDelay(tries int) time.Duration {
	steps := [...]time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour}
	return steps[min(max(tries, 1), len(steps))-1]
}

// Run follows the changes of other replicas, and delivers notices to the webhook, until
// ctx ends.
func (s *Service) Run(ctx context.Context) error {
	g := run.New(ctx)
	g.Go("follow tickets", s.others.follow)
	if s.sender != nil {
		g.Go("deliver notices", s.deliverNotices)
	}
	return g.Wait()
}

func (s *Service) deliverNotices(ctx context.Context) error {
	defer s.sender.client.CloseIdleConnections()
	for {
		item, wait := s.queue.nextDue(s.cfg.Now())
		if item != nil {
			s.deliverNotice(ctx, item)
		}
		if ctx.Err() != nil {
			return nil
		}
		if item != nil {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-s.queue.more:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// enqueueNotices adds the pending notices of a ticket to the queue.
func (s *Service) enqueueNotices(r *ticketRecord) {
	if s.sender == nil {
		return
	}
	for i := range r.Pending {
		n := &r.Pending[i]
		it := delivery{ticket: r.Ticket.TicketID, notice: n.ID, owner: n.Owner, at: n.At, due: n.At}
		if !s.others.mayDeliver(n.Owner) {
			it.due = s.cfg.Now().Add(otherOwnerPause)
		}
		s.queue.add(it)
	}
}

// deliverNotice tries to deliver one notice. The notice stays in the ticket's record
// until it is delivered or expires; a process that ends in between delivers it
// again. The process that has stored a notice delivers it, and another one if that has
// ended.
func (s *Service) deliverNotice(ctx context.Context, it *delivery) {
	r, err := s.takeOverNotice(ctx, it)
	if errors.Is(err, store.ErrNotFound) {
		s.queue.remove(it.notice)
		return
	}
	if errors.Is(err, errOtherOwner) {
		s.queue.lookLater(it.notice, s.cfg.Now())
		return
	}
	if err == nil {
		at := r.findNotice(it.notice)
		if at < 0 {
			s.queue.remove(it.notice)
			return
		}
		err = s.sender.sendMessage(ctx, it.notice, messageOf(&r.Ticket, &r.Pending[at]), s.cfg.Now())
	}
	outcome := DeliveredOK
	switch {
	case ctx.Err() != nil:
		return // shutdown: the notice stays in the record
	case errors.Is(err, errGone):
		s.queue.stop()
		s.reportDelivery(ctx, it, DeliveredGone, err)
		return
	case err != nil && s.cfg.Now().Sub(it.at) >= maxDeliveryAge:
		outcome = DeliveredExpired
	case err != nil:
		s.queue.retryLater(it.notice, s.cfg.Now())
		s.reportDelivery(ctx, it, DeliveredFailed, err)
		return
	}
	s.reportDelivery(ctx, it, outcome, err)
	if err := s.removeNotice(ctx, it); err != nil {
		s.queue.retryLater(it.notice, s.cfg.Now())
		s.cfg.Logger.WarnContext(ctx, "a delivered notice cannot be removed and will be sent again", "ticket_id", it.ticket, "error", err)
		return
	}
	s.queue.remove(it.notice)
}

// errOtherOwner means that another process delivers a notice.
var errOtherOwner = errors.New("another replica delivers it")

// takeOverNotice returns the ticket of a notice that this process delivers, or
// errOtherOwner. If the process that should deliver it has ended, one of the others takes
// its place by compare-and-set.
func (s *Service) takeOverNotice(ctx context.Context, it *delivery) (*ticketRecord, error) {
	own := s.others.owner()
	if it.owner == own {
		return s.loadTicket(ctx, it.ticket)
	}
	r, err := s.updateTicket(ctx, it.ticket, func(r *ticketRecord) error {
		i := r.findNotice(it.notice)
		switch {
		case i < 0 || r.Pending[i].Owner == own:
			return errNoChange
		case !s.others.mayDeliver(r.Pending[i].Owner):
			return errOtherOwner
		}
		r.Pending[i].Owner = own
		return nil
	})
	if errors.Is(err, errNoChange) {
		err = nil
	}
	if err == nil {
		s.queue.setOwner(it.notice, own)
	}
	return r, err
}

// removeNotice removes a notice from its ticket's record.
func (s *Service) removeNotice(ctx context.Context, it *delivery) error {
	_, err := s.updateTicket(ctx, it.ticket, func(r *ticketRecord) error {
		before := len(r.Pending)
		r.Pending = slices.DeleteFunc(r.Pending, func(n webhookNotice) bool { return n.ID == it.notice })
		if len(r.Pending) == before {
			return errNoChange
		}
		return nil
	})
	if errors.Is(err, errNoChange) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

func (s *Service) reportDelivery(ctx context.Context, it *delivery, outcome string, err error) {
	if s.cfg.OnDelivered != nil {
		s.cfg.OnDelivered(outcome)
	}
	if outcome == DeliveredOK {
		return
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the URL may contain a secret
	}
	if outcome == DeliveredGone {
		s.cfg.Logger.WarnContext(ctx, "the webhook answered 410: no notices until the next start", "ticket_id", it.ticket, "error", err)
		return
	}
	s.cfg.Logger.WarnContext(ctx, "a notice was not delivered to the webhook", "ticket_id", it.ticket, "outcome", outcome, "tries", it.tries+1, "error", err)
}

// deliveryQueue contains the pending notices with the time of their next attempt.
// Callers pass the time.
type deliveryQueue struct {
	backoff func(tries int) time.Duration
	more    chan struct{} // capacity 1: a notice was added

	mu      sync.Mutex
	items   map[string]*delivery // by notice
	stopped bool
}

type delivery struct {
	ticket, notice string
	owner          string    // see webhookNotice
	at             time.Time // time of the event
	due            time.Time // time of the next attempt
	tries          int
}

func newQueue(backoff func(int) time.Duration) *deliveryQueue {
	return &deliveryQueue{backoff: backoff, more: make(chan struct{}, 1), items: map[string]*delivery{}}
}

func (q *deliveryQueue) add(it delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.items[it.notice] != nil || q.stopped {
		return
	}
	q.items[it.notice] = &it
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// idleWait is how long Run waits if there is nothing to do.
const idleWait = time.Hour

// nextDue returns the oldest due notice, or else how long to wait.
func (q *deliveryQueue) nextDue(now time.Time) (*delivery, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var first *delivery
	for _, it := range q.items {
		if first == nil || it.due.Before(first.due) || it.due.Equal(first.due) && it.notice < first.notice {
			first = it
		}
	}
	switch {
	case first == nil:
		return nil, idleWait
	case first.due.After(now):
		return nil, min(first.due.Sub(now), idleWait)
	}
	it := *first
	return &it, 0
}

func (q *deliveryQueue) remove(notice string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.items, notice)
}

// retryLater schedules the next attempt.
func (q *deliveryQueue) retryLater(notice string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[notice]; it != nil {
		it.tries++
		it.due = now.Add(q.backoff(it.tries))
	}
}

// otherOwnerPause is the interval of checks whether the process that delivers a notice has
// ended.
const otherOwnerPause = 10 * time.Second

// lookLater schedules a look at a notice that another process delivers.
func (q *deliveryQueue) lookLater(notice string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[notice]; it != nil {
		it.due = now.Add(otherOwnerPause)
	}
}

func (q *deliveryQueue) setOwner(notice, owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[notice]; it != nil {
		it.owner = owner
	}
}

// stop empties the queue and rejects further notices.
func (q *deliveryQueue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.items)
	q.stopped = true
}
