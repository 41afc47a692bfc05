package workload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	pullWorkers = 4
	pullWaitS   = 5
	// pullLeaseS is short, so that the request of a task whose lease was lost with its
	// router ends soon.
	pullLeaseS = 10
)

// StartPullers pulls the tasks of PullAgent from the running routers until ctx ends.
func (a *Agents) StartPullers() {
	for range pullWorkers {
		a.group.Go("worker of "+PullAgent, func(ctx context.Context) error {
			for ctx.Err() == nil {
				if leased := a.pullTask(ctx); leased != nil {
					a.executePulled(ctx, leased)
				} else if !resilience.Sleep(ctx, retryDelay) {
					break
				}
			}
			return nil
		})
	}
}

// pullTask returns the next task, nil if there is none or no router answers.
func (a *Agents) pullTask(ctx context.Context) *contract.LeasedTask {
	ctx, cancel := context.WithTimeout(ctx, process.IOTimeout+pullWaitS*time.Second)
	defer cancel()
	body := encodeJSON(contract.LeaseRequest{WaitS: pullWaitS, LeaseTTLS: pullLeaseS})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, PublicURL+"/api/v1/agents/"+PullAgent+"/lease", bytes.NewReader(body))
	if err != nil {
		a.ledger.RecordUnexpected("", err.Error())
		return nil
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.routers.Client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	switch {
	case err != nil, resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusServiceUnavailable:
		return nil // the router was killed while it sent the task: the lease is lost
	case resp.StatusCode != http.StatusOK:
		a.ledger.RecordUnexpected("", fmt.Sprintf("a lease was answered with %d: %.200s", resp.StatusCode, data))
		return nil
	}
	leased := new(contract.LeasedTask)
	if err := strictjson.UnmarshalAllowUnknown(data, leased); err != nil {
		a.ledger.RecordUnexpected("", fmt.Sprintf("%s received an invalid task: %v", PullAgent, err))
		return nil
	}
	return leased
}

// executePulled executes a task and delivers its result. The agent is not idempotent, so
// it must never get a task twice.
func (a *Agents) executePulled(ctx context.Context, leased *contract.LeasedTask) {
	task := &leased.Task
	e := a.newExecution(task, PullAgent)
	a.ledger.recordExecution(e)
	if task.Callback == nil {
		a.ledger.RecordUnexpected(task.RequestID, "a pulled task without a callback")
		return
	}
	a.pendingCallbacks.Add(1)
	defer a.pendingCallbacks.Add(-1)
	if resilience.Sleep(ctx, a.rng.DurationUpTo(maxWorkTime)) {
		a.DeliverResult(ctx, task, e.mark)
	}
}
