package router

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/decisionlog"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router/plan"
)

// requestRun is one accepted request on its way through the pipeline. The embedded
// Request is immutable. All else is mutable and has exactly one owner: the goroutine
// that serves the request. Submit hands ownership over to a background goroutine.
//
//	state        synchronous request                       asynchronous request
//	accepted     in memory                                 stored (accepted), then queued
//	classified   in memory                                 in memory
//	planned      decision in the audit log                 stored (planned), decision in the audit log
//	executing    tasks in memory                           stored (running from the first task), each task stored
//	concluded    response in the audit log                 stored (terminal), response in the audit log
//
// A clarification, a fallback and a dry run go from classified to concluded. The
// states of an asynchronous run after a restart are in internal/asyncrun, those of
// the stored request in internal/requests.
type requestRun struct {
	*execution.Request
	view        *View        // classifies and plans the request
	current     *currentView // of the router
	timings     *decisionlog.Timings
	inflight    *inflight.Request       // nil for a dry run, which cannot be looked up or cancelled
	reservation idempotency.Reservation // of its idempotency key

	async       bool // no caller waits for the response
	persistence execution.Persistence
	recorder    outcomeRecorder
	emit        func(*contract.Event)
	planned     *View           // the registry of the plan; nil for a restored plan
	restored    *plan.Plan      // the plan of a resumed request; nil to make one
	previous    []requests.Task // the tasks of a resumed request
	announced   bool            // the decision was emitted
	encoded     history.EncodedResponse
}

func (run *requestRun) isDryRun() bool { return run.Options.DryRun }

// showDecision shows the decision to lookups of the running request.
func (run *requestRun) showDecision(d *contract.Decision) {
	if !run.isDryRun() {
		run.inflight.SetDecision(d)
	}
}

// emitDecision emits the decision, once.
func (run *requestRun) emitDecision(d *contract.Decision) {
	if !run.announced {
		run.announced = true
		run.emit(&contract.Event{Type: contract.EventDecision, Decision: d})
	}
}

// liveState returns the current state of the agents. An asynchronous request is
// planned without it, because an agent that is busy or down now may execute the
// request later.
func (run *requestRun) liveState() matcher.Live {
	if run.async {
		return nil
	}
	return run.view.Live
}

func (run *requestRun) classifierInput() classifier.Input {
	return classifier.Input{
		Prompt:    run.Prompt,
		History:   run.Turns,
		Previous:  run.Previous,
		Locale:    run.Locale,
		Catalogue: run.view.Catalogue,
		Lexical:   run.view.Lexical,
		Partition: cachePartition(run.Caller),
	}
}

// cachePartition names the callers that share cached replies of a model: those of
// one tenant, or those without a tenant of one issuer.
func cachePartition(caller *contract.Caller) string {
	if caller.Tenant != "" {
		return "tenant " + caller.Tenant
	}
	return "issuer " + caller.Issuer
}

// finalWriteGrace is how long a synchronous response may be delayed beyond the
// deadline by the write to the audit log.
const finalWriteGrace = 150 * time.Millisecond

// detachedContext returns a context for writes that must happen although the context of the
// request ends: a disconnect must not leave a decision without an outcome. It ends
// shortly after the deadline of a synchronous request, so that a slow disk does not
// delay the response; the write continues.
func (run *requestRun) detachedContext(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if run.async || !ok {
		return execution.Detach(ctx)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(finalWriteGrace))
}
