package execution

import (
	"context"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
)

// Pauses between two rounds over the agents of a part. An asynchronous request has
// time: if all agents of a part are at their limits, fail too often or cannot be
// reached, the part is offered to them again later.
const (
	firstRoundPause = 100 * time.Millisecond
	maxRoundPause   = 30 * time.Second
	maxBusyPause    = time.Second // if the agents are only at their limits
)

// waitForNextRound pauses with exponential backoff and jitter, and reports whether
// there is another round.
func (p *partExecution) waitForNextRound(ctx context.Context, round int) bool {
	if p.sends >= p.run.MaxSends || !p.hasAgentsLeft() {
		return false
	}
	longest := maxRoundPause
	if p.current.Report.Attempts == 0 {
		longest = maxBusyPause
	}
	pause := min(firstRoundPause<<min(round, 20), longest)

	p.run.Permit.Release()
	defer p.run.Permit.Acquire(ctx)
	return resilience.Sleep(ctx, resilience.AddJitter(pause))
}

func (p *partExecution) hasAgentsLeft() bool {
	return slices.ContainsFunc(p.part.Agents, func(id string) bool { return !slices.Contains(p.excluded, id) })
}
