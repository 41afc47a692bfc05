package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/test/internal/workload"
)

// probePause is the time between two probes of a replica.
const probePause = 150 * time.Millisecond

// prober sends one synchronous request after the other to one replica. Its methods are
// safe for concurrent use.
type prober struct {
	replica string
	ledger  *workload.Ledger
	addr    atomic.Pointer[string]

	mu      sync.Mutex
	answers []answer
}

// answer is the end of one probe.
type answer struct {
	at time.Time
	ok bool
}

func newProber(name string, ledger *workload.Ledger, addr string) *prober {
	p := &prober{replica: name, ledger: ledger}
	p.setAddr(addr)
	return p
}

// setAddr sets the address of the replica, which changes with each start.
func (p *prober) setAddr(addr string) { p.addr.Store(&addr) }

// run probes the replica until the context lives ends.
func (p *prober) run(ctx, lives context.Context) {
	for n := 0; resilience.Sleep(lives, probePause); n++ {
		callers := &workload.Callers{Ledger: p.ledger, Routers: workload.OneRouter(*p.addr.Load())}
		prompt := fmt.Sprintf(workload.PlainPrompt, n) + " for " + p.replica
		ok := callers.SubmitOrder(ctx, workload.NewSyncOrder(prompt, ""))
		p.mu.Lock()
		p.answers = append(p.answers, answer{time.Now(), ok})
		p.mu.Unlock()
	}
}

// probed summarizes the probes that ended between two times.
type probed struct {
	answered, failed int
	gap              time.Duration // longest time without an answer
}

func (p *prober) between(from, to time.Time) probed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return summarize(p.answers, from, to)
}

// summarize returns the summary of the answers, which are in the order of their times.
// The gap begins or ends at the limits if there is no answer before or after it.
func summarize(answers []answer, from, to time.Time) probed {
	var sum probed
	last := from
	for _, a := range answers {
		switch {
		case a.at.Before(from) || a.at.After(to):
		case a.ok:
			sum.answered++
			sum.gap = max(sum.gap, a.at.Sub(last))
			last = a.at
		default:
			sum.failed++
		}
	}
	sum.gap = max(sum.gap, to.Sub(last))
	return sum
}

func (s probed) String() string {
	return fmt.Sprintf("%d of %d answered, none for %.1f s", s.answered, s.answered+s.failed, s.gap.Seconds())
}
