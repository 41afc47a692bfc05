package tickets

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// What came of telling the webhook something.
const (
	DeliveredOK      = "ok"
	DeliveredFailed  = "failed"  // it will be tried again
	DeliveredExpired = "expired" // it was tried for a day
	DeliveredGone    = "gone"    // the address wants no messages: none is sent until the next start
)

// maxDeliveryAge is how long a message is tried.
const maxDeliveryAge = 24 * time.Hour

// retryDelay is the pause after so many failed tries.
func retryDelay(tries int) time.Duration {
	steps := [...]time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour}
	return steps[min(max(tries, 1), len(steps))-1]
}

// Run tells the webhook what there is to tell, until ctx ends. Without a webhook it
// only waits.
func (d *Service) Run(ctx context.Context) error {
	if d.sender == nil {
		<-ctx.Done()
		return nil
	}
	defer d.sender.client.CloseIdleConnections()
	for {
		item, wait := d.queue.nextDue(d.cfg.Now())
		if item != nil {
			d.deliverNotice(ctx, item)
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
		case <-d.queue.more:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// enqueueNotices takes what a ticket has to tell, as far as it is not in the queue yet.
func (d *Service) enqueueNotices(r *ticketRecord) {
	if d.sender == nil {
		return
	}
	for i := range r.Pending {
		d.queue.add(delivery{ticket: r.Ticket.TicketID, notice: r.Pending[i].ID, at: r.Pending[i].At, due: r.Pending[i].At})
	}
}

// deliverNotice tries one message. It stays in the ticket's record until it has arrived
// or is given up; a process that ends between the two sends it once more.
func (d *Service) deliverNotice(ctx context.Context, it *delivery) {
	r, err := d.loadTicket(ctx, it.ticket)
	if errors.Is(err, store.ErrNotFound) {
		d.queue.remove(it.notice)
		return
	}
	if err == nil {
		at := slices.IndexFunc(r.Pending, func(n webhookNotice) bool { return n.ID == it.notice })
		if at < 0 {
			d.queue.remove(it.notice)
			return
		}
		err = d.sender.sendMessage(ctx, it.notice, messageOf(&r.Ticket, &r.Pending[at]), d.cfg.Now())
	}
	outcome := DeliveredOK
	switch {
	case ctx.Err() != nil:
		return // not the other side's fault, and still in the record
	case errors.Is(err, errGone):
		d.queue.stop()
		d.reportDelivery(ctx, it, DeliveredGone, err)
		return
	case err != nil && d.cfg.Now().Sub(it.at) >= maxDeliveryAge:
		outcome = DeliveredExpired
	case err != nil:
		d.queue.retryLater(it.notice, d.cfg.Now())
		d.reportDelivery(ctx, it, DeliveredFailed, err)
		return
	}
	d.reportDelivery(ctx, it, outcome, err)
	if err := d.removeNotice(ctx, it); err != nil {
		d.queue.retryLater(it.notice, d.cfg.Now())
		d.cfg.Logger.WarnContext(ctx, "what the webhook was told cannot be struck off; it is told again", "ticket_id", it.ticket, "err", err)
		return
	}
	d.queue.remove(it.notice)
}

// removeNotice strikes a message off its ticket's record.
func (d *Service) removeNotice(ctx context.Context, it *delivery) error {
	_, err := d.updateTicket(ctx, it.ticket, func(r *ticketRecord) error {
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

func (d *Service) reportDelivery(ctx context.Context, it *delivery, outcome string, err error) {
	if d.cfg.OnDelivered != nil {
		d.cfg.OnDelivered(outcome)
	}
	if outcome == DeliveredOK {
		return
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the address may be a secret in itself
	}
	if outcome == DeliveredGone {
		d.cfg.Logger.WarnContext(ctx, "the webhook wants no messages: it is told nothing more until the next start", "ticket_id", it.ticket, "err", err)
		return
	}
	d.cfg.Logger.WarnContext(ctx, "the webhook was not told of a ticket", "ticket_id", it.ticket, "outcome", outcome, "tries", it.tries+1, "err", err)
}

// deliveryQueue holds the messages that are to be sent, with the time of the next try. It
// knows no clock.
type deliveryQueue struct {
	backoff func(tries int) time.Duration
	more    chan struct{} // something was added

	mu      sync.Mutex
	items   map[string]*delivery // by notice
	stopped bool
}

type delivery struct {
	ticket, notice string
	at             time.Time // it happened
	due            time.Time // of the next try
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

// idleWait is how long there is to wait when there is nothing to do.
const idleWait = time.Hour

// nextDue is the message that is due, the oldest first; without one, how long to wait
// for it.
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

// retryLater puts a message off that did not get through.
func (q *deliveryQueue) retryLater(notice string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[notice]; it != nil {
		it.tries++
		it.due = now.Add(q.backoff(it.tries))
	}
}

// stop drops everything and takes nothing more.
func (q *deliveryQueue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.items)
	q.stopped = true
}
