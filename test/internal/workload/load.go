package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	// RequestTimeoutMS is the timeout of a request: long, so that a lost task shows as
	// an open request.
	RequestTimeoutMS = 5 * 60_000

	defaultMaxPause  = 30 * time.Millisecond  // between two requests or reads
	maxCancelPause   = 100 * time.Millisecond // between two cancels
	shortTimeoutMS   = 2_000                  // of a request whose agent never delivers
	sampleSize       = 20                     // ended requests that are read again per round
	concurrentOrders = 4                      // callers
	concurrentFills  = 2                      // callers that keep a small store full
	concurrentReads  = 16
	fills            = 260         // long requests of which half of a small store is full
	endTimeout       = time.Minute // until all requests have ended
)

// Load is a mixed load of synchronous and asynchronous requests, idempotency keys,
// cancels, reads and event streams.
type Load struct {
	Callers   *Callers
	Ledger    *Ledger
	Agents    *Agents
	Rand      *Rand
	MaxPause  time.Duration // between two requests or reads of a caller; 0 = 30 ms
	MaxOrders int           // per caller and Run
	Fill      bool          // keep a small store full

	mu         sync.Mutex
	lastPrompt int     // number in the last prompt
	unanswered []Order // with an idempotency key, because only these can be resent
	answered   []Order // with an idempotency key
}

// Run sends and reads requests until the context lives ends, or each caller has sent
// MaxOrders. A request in progress then is not interrupted, unless ctx ends as well.
func (l *Load) Run(ctx, lives context.Context) {
	jobs := []func(ctx, lives context.Context){l.pollRequests, l.followStreams, l.cancelRequests}
	for range concurrentOrders {
		jobs = append(jobs, l.sendOrders)
	}
	if l.Fill {
		for range concurrentFills {
			jobs = append(jobs, l.keepFull)
		}
	}
	run.ForEach(ctx, len(jobs), len(jobs), func(ctx context.Context, i int) { jobs[i](ctx, lives) })
}

func (l *Load) maxPause() time.Duration { return cmp.Or(l.MaxPause, defaultMaxPause) }

// sendOrders is one caller. It resends unanswered orders first.
func (l *Load) sendOrders(ctx, lives context.Context) {
	for range l.MaxOrders {
		if !resilience.Sleep(lives, l.Rand.DurationUpTo(l.maxPause())) {
			return
		}
		o, again := l.nextOrder()
		callers := 1
		if o.key != "" && !again && l.Rand.OneIn(4) {
			callers = 2 // concurrent requests with the same key
		}
		answered := make([]bool, callers)
		run.ForEach(ctx, callers, callers, func(ctx context.Context, i int) { answered[i] = l.Callers.SubmitOrder(ctx, o) })
		l.queueOrder(o, answered[0])
	}
}

// FillStore sends as many long requests as a small store contains.
func (l *Load) FillStore(ctx context.Context) {
	run.ForEach(ctx, concurrentReads, fills, func(ctx context.Context, i int) { l.Callers.SubmitOrder(ctx, l.longOrder()) })
}

// keepFull sends long requests.
func (l *Load) keepFull(ctx, lives context.Context) {
	for lives.Err() == nil {
		if !l.Callers.SubmitOrder(ctx, l.longOrder()) {
			resilience.Sleep(lives, l.maxPause())
		}
	}
}

// longOrder returns a request that fills the audit log, and every other time also the
// bucket of asynchronous requests.
func (l *Load) longOrder() Order {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastPrompt++
	if l.lastPrompt%2 == 0 {
		return NewOrder(longPrompt(l.lastPrompt), "", RequestTimeoutMS, false)
	}
	return NewSyncOrder(longPrompt(l.lastPrompt), "")
}

// nextOrder returns an unanswered order if there is one, sometimes an answered one,
// else a new one.
func (l *Load) nextOrder() (_ Order, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unanswered) > 0 {
		o := l.unanswered[0]
		l.unanswered = l.unanswered[1:]
		return o, true
	}
	if len(l.answered) > 0 && l.Rand.OneIn(8) {
		return l.answered[l.Rand.IntN(len(l.answered))], true
	}
	l.lastPrompt++
	key := ""
	if l.Rand.OneIn(3) {
		key = fmt.Sprintf("key-%d", l.lastPrompt)
	}
	if l.Rand.OneIn(4) {
		kinds := []string{PlainPrompt, CostPrompt, LogPrompt}
		return NewSyncOrder(fmt.Sprintf(kinds[l.Rand.IntN(len(kinds))], l.lastPrompt), key), false
	}
	kinds := promptTemplates()
	kind := l.Rand.IntN(len(kinds))
	timeout, hold := RequestTimeoutMS, false
	if kinds[kind] == AsyncPrompt && l.Rand.OneIn(6) {
		timeout, hold = shortTimeoutMS, true // the router has to end it at its deadline
	}
	return NewOrder(fmt.Sprintf(kinds[kind], l.lastPrompt), key, timeout, hold), false
}

// queueOrder remembers an order with a key, to send it again.
func (l *Load) queueOrder(o Order, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case o.key == "":
	case answered:
		l.answered = append(l.answered, o)
	default:
		l.unanswered = append(l.unanswered, o)
	}
}

// cancelRequests cancels some open requests.
func (l *Load) cancelRequests(ctx, lives context.Context) {
	for resilience.Sleep(lives, l.Rand.DurationUpTo(maxCancelPause)) {
		if open := l.Ledger.OpenRequests(); len(open) > 0 {
			l.Callers.CancelRequest(ctx, open[l.Rand.IntN(len(open))])
		}
	}
}

// pollRequests reads open requests, and some ended ones, which must not change.
func (l *Load) pollRequests(ctx, lives context.Context) {
	for resilience.Sleep(lives, l.Rand.DurationUpTo(l.maxPause())) {
		for _, id := range l.Ledger.OpenRequests() {
			if lives.Err() != nil {
				return
			}
			l.Callers.FetchRequest(ctx, id)
		}
		all := l.Ledger.AllRequests()
		for range min(sampleSize, len(all)) {
			if lives.Err() != nil {
				return
			}
			l.Callers.FetchRequest(ctx, all[l.Rand.IntN(len(all))])
		}
	}
}

// followStreams reads the events of one open request after the other. A stream breaks
// when the router is killed, and continues with the next router.
func (l *Load) followStreams(ctx, lives context.Context) {
	for resilience.Sleep(lives, l.Rand.DurationUpTo(l.maxPause())) {
		if open := l.Ledger.OpenRequests(); len(open) > 0 {
			l.followWatched(ctx, open[len(open)-1-l.Rand.IntN(min(len(open), sampleSize))])
		}
	}
}

// followWatched reads the events of a request. If they do not end in time, although
// the request has ended, this is a violation.
func (l *Load) followWatched(ctx context.Context, id string) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	run.ForEach(ctx, 2, 2, func(ctx context.Context, i int) {
		if i == 0 {
			l.Callers.FollowEvents(reading, id)
			stop()
			return
		}
		defer stop()
		if resilience.Sleep(reading, process.IOTimeout) {
			l.Callers.FetchRequest(ctx, id)
			if !slices.Contains(l.Ledger.OpenRequests(), id) && resilience.Sleep(reading, process.IOTimeout) {
				l.Ledger.RecordUnexpected(id, "the request has ended, but its stream of events does not end")
			}
		}
	})
}

// Finish resends unanswered orders, waits until all requests have ended, and reads
// them once more.
func (l *Load) Finish(ctx context.Context) {
	l.resendOrders(ctx)
	// Agents may know requests whose 202 no caller received.
	AwaitCondition(ctx, endTimeout, func() bool { return l.Agents.pendingCallbacks.Load() == 0 })
	l.AwaitEnds(ctx, endTimeout)
	l.followRemaining(ctx)
	l.FetchAll(ctx)
}

// resendOrders sends unanswered orders until they are answered.
func (l *Load) resendOrders(ctx context.Context) {
	AwaitCondition(ctx, endTimeout, func() bool {
		l.unanswered = slices.DeleteFunc(l.unanswered, func(o Order) bool { return l.Callers.SubmitOrder(ctx, o) })
		return len(l.unanswered) == 0
	})
	for _, o := range l.unanswered {
		l.Ledger.RecordUnexpected(o.key, "the order with this key is never answered")
	}
}

// FetchAll reads each request once.
func (l *Load) FetchAll(ctx context.Context) { l.fetchRequests(ctx, l.Ledger.AllRequests()) }

// FetchFromEach reads each request once from each running replica. The ledger records
// replies that differ.
func (l *Load) FetchFromEach(ctx context.Context, replicas []*Replica) {
	ids := l.Ledger.AllRequests()
	for _, r := range replicas {
		if r.Process != nil {
			callers := &Callers{Ledger: l.Ledger, Routers: OneRouter(r.Process.Addr())}
			run.ForEach(ctx, concurrentReads, len(ids), func(ctx context.Context, i int) { callers.FetchRequest(ctx, ids[i]) })
		}
	}
}

func (l *Load) fetchRequests(ctx context.Context, ids []string) {
	run.ForEach(ctx, concurrentReads, len(ids), func(ctx context.Context, i int) { l.Callers.FetchRequest(ctx, ids[i]) })
}

// AwaitEnds reads open requests until all have ended or the limit has passed.
func (l *Load) AwaitEnds(ctx context.Context, limit time.Duration) {
	AwaitCondition(ctx, limit, func() bool {
		l.Ledger.AcceptExecuted()
		l.fetchRequests(ctx, l.Ledger.OpenRequests())
		return len(l.Ledger.OpenRequests()) == 0
	})
}

// followRemaining reads the events of every request without a final event.
func (l *Load) followRemaining(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	ids := l.Ledger.WithoutFinalEvent()
	run.ForEach(ctx, concurrentReads, len(ids), func(ctx context.Context, i int) {
		ctx, cancel := context.WithTimeout(ctx, process.IOTimeout)
		defer cancel()
		l.Callers.FollowEvents(ctx, ids[i])
	})
}

// AwaitCondition polls until done reports true, and reports whether it did within the
// limit.
func AwaitCondition(ctx context.Context, limit time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done() {
		if !resilience.Sleep(ctx, 20*time.Millisecond) {
			return false
		}
	}
	return true
}
