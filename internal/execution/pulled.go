package execution

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/pulltarget"
	"github.com/caprouter/caprouter/internal/requests"
)

// pullsTasks reports whether the router cannot reach the agent, which pulls its tasks.
// All instances of an agent have the same protocol.
func pullsTasks(agent *contract.RegistryEntry) bool {
	return agent.Endpoint.Protocol == contract.ProtocolPull
}

// awaitPulled offers a stored task to its agent and waits for the result. The permit is
// released meanwhile, as in awaitCallback.
func (p *partExecution) awaitPulled(ctx context.Context, pending *pendingTask, agent *contract.RegistryEntry, standbys int, sentAt time.Time) dispatch.Outcome {
	p.run.Permit.Release()
	defer p.run.Permit.Acquire(ctx)
	callbacks, requestID := p.executor.callbacks, p.run.Request.RequestID
	out, arrived := callbacks.offers.Await(ctx, &pulltarget.Wait{
		Offer:  pulltarget.Offer{AgentID: agent.ID, RequestID: requestID, TaskID: pending.id},
		Call:   p.newCall(agent, &contract.Task{TaskID: pending.id, RequestID: requestID}, standbys),
		SentAt: sentAt, Arrived: pending.done, Announce: callbacks.cfg.Peers.Offer, Now: p.executor.now,
		Read: func(ctx context.Context) (*requests.Task, error) {
			return callbacks.readTask(ctx, requestID, pending.id)
		},
		Refusal: func() string {
			entry, refusal := p.run.Registry.Eligible(p.part, agent.ID)
			if refusal != nil {
				return refusal.Detail
			}
			if reason := dispatch.RefusalOf(entry); reason != "" && !p.mayWaitForReturn(standbys) {
				return entry.ID + " " + reason
			}
			return ""
		},
		Changed: p.run.Registry.Changed,
		Gone: func() bool {
			entry := p.run.Registry.Entry(agent.ID)
			return (entry == nil || dispatch.RefusalOf(entry) != "") && !p.mayWaitForReturn(standbys)
		},
	})
	if arrived {
		return dispatch.Outcome{Result: pending.completedWith(), Health: dispatch.HealthGood}
	}
	return out
}

// mayWaitForReturn reports whether an offered task stays offered if no instance of its agent is
// active. An asynchronous request has time, and a worker that is replaced leaves and registers
// again. A caller that waits, or a standby that can take over, gets the failure at once.
func (p *partExecution) mayWaitForReturn(standbys int) bool {
	return p.run.MaxSends > 0 && standbys == 0
}
