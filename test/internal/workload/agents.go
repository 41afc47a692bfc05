package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	maxWorkTime      = 120 * time.Millisecond // until an agent answers
	maxCallbackDelay = 600 * time.Millisecond // from 202 to the callback
	retryDelay       = 30 * time.Millisecond  // between attempts to deliver a result
	deliveryGrace    = time.Minute            // how long delivery is tried after the deadline of the task
)

// Inputs of a request that control the agents.
const (
	inputKey  = "key"  // the Idempotency-Key it was sent with
	inputHold = "hold" // if set, answer only after ReleaseHeld
	inputSync = "sync" // set if the request is synchronous

	inputBefore = "before" // the prompt of the turn before, which must be in the task's history
)

// Agents serves all agents on one listener. It survives every router.
type Agents struct {
	ledger           *Ledger
	rng              *Rand
	routers          *Routers
	group            *run.Group
	Base             string // http://host:port
	lastMark         atomic.Int64
	pendingCallbacks atomic.Int64 // callbacks without a final answer

	mu          sync.Mutex
	heldTasks   []contract.Task // accepted with 202, delivered after ReleaseHeld
	releaseOnce sync.Once
	released    chan struct{} // closed by ReleaseHeld
}

// StartAgents serves the agents until ctx ends. The group owns their goroutines.
func StartAgents(ctx context.Context, group *run.Group, l *Ledger, d *Rand, to *Routers) (*Agents, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &Agents{
		ledger: l, rng: d, routers: to, group: group,
		Base: "http://" + listener.Addr().String(), released: make(chan struct{}),
	}
	mux := http.NewServeMux()
	for _, id := range []string{PlainAgent, OnceAgent, OnceStandby, AsyncAgent, UnreliableAgent, SpareAgent, JoinedAgent} {
		mux.HandleFunc("POST /"+id, func(w http.ResponseWriter, r *http.Request) { a.serveTask(w, r, id) })
		mux.HandleFunc("POST /"+id+"/{task}/cancel", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	group.Go("agents", func(ctx context.Context) error { return process.ServeUntilDone(ctx, listener, mux) })
	return a, nil
}

// serveTask handles one task. It counts as an execution when it has been read
// completely.
func (a *Agents) serveTask(w http.ResponseWriter, r *http.Request, agent string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the router was killed while it sent the task, so it does not count
	}
	var task contract.Task
	if err := strictjson.UnmarshalAllowUnknown(body, &task); err != nil {
		a.ledger.RecordUnexpected("", fmt.Sprintf("%s received an invalid task: %v", agent, err))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e := a.newExecution(&task, agent)
	switch agent {
	case AsyncAgent:
		a.serveAsync(w, &task, e)
	case UnreliableAgent:
		a.serveUnreliably(w, r, e)
	case OnceAgent:
		e.failed = a.rng.OneIn(8)
		a.ledger.recordExecution(e)
		a.sendResult(w, r, e)
	default:
		a.ledger.recordExecution(e)
		if _, hold := task.Inputs[inputHold]; hold {
			select {
			case <-a.released:
			case <-r.Context().Done(): // the router closed the connection
			}
		}
		a.sendResult(w, r, e)
	}
}

// newExecution returns the execution of a task that an agent has received.
func (a *Agents) newExecution(task *contract.Task, agent string) execution {
	a.ledger.recordKey(unquoteJSON(task.Inputs[inputKey]), task.RequestID)
	if before := unquoteJSON(task.Inputs[inputBefore]); before != "" {
		a.ledger.recordTurn(task.RequestID, slices.ContainsFunc(task.History, func(t contract.Turn) bool { return strings.Contains(t.Content, before) }))
	}
	e := execution{
		subtask: subtask{task.RequestID, task.Intent}, task: task.TaskID, agent: agent,
		mark: a.NewMark(agent), idempotent: isIdempotent(agent), at: time.Now(),
	}
	_, e.sync = task.Inputs[inputSync]
	return e
}

// NewMark returns a unique value that identifies one result.
func (a *Agents) NewMark(agent string) string {
	return fmt.Sprintf("%s-%d", agent, a.lastMark.Add(1))
}

func (a *Agents) sendResult(w http.ResponseWriter, r *http.Request, e execution) {
	if !resilience.Sleep(r.Context(), a.rng.DurationUpTo(maxWorkTime)) {
		return
	}
	status := contract.ResultSuccess
	if e.failed {
		status = contract.ResultFailure
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encodeResult(e.task, e.mark, status)) // fails if the router was killed
}

// serveUnreliably fails in several ways. The agent is idempotent.
func (a *Agents) serveUnreliably(w http.ResponseWriter, r *http.Request, e execution) {
	way := a.rng.IntN(8)
	e.failed = way < 4
	a.ledger.recordExecution(e)
	switch way {
	case 0:
		panic(http.ErrAbortHandler) // breaks the connection
	case 1:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		a.sendResult(w, r, e) // ways 2 and 3 return a failure
	}
}

// serveAsync accepts the task and sends its result by callback. Sometimes it sends a
// second, different result at the same time, of which only one may be accepted.
func (a *Agents) serveAsync(w http.ResponseWriter, task *contract.Task, e execution) {
	a.ledger.recordExecution(e)
	if task.Callback == nil {
		a.ledger.RecordUnexpected(task.RequestID, "a task without a callback")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if _, hold := task.Inputs[inputHold]; hold {
		a.mu.Lock()
		a.heldTasks = append(a.heldTasks, *task)
		a.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	marks := []string{e.mark}
	if a.rng.OneIn(4) {
		marks = append(marks, a.NewMark(e.agent))
	}
	for _, mark := range marks {
		after := a.rng.DurationUpTo(maxCallbackDelay)
		a.pendingCallbacks.Add(1)
		a.group.Go("callback of "+e.task, func(ctx context.Context) error {
			defer a.pendingCallbacks.Add(-1)
			if resilience.Sleep(ctx, after) {
				a.DeliverResult(ctx, task, mark)
			}
			return nil
		})
	}
}

// DeliverResult posts the result until it is accepted or refused, and reports whether
// it was accepted.
func (a *Agents) DeliverResult(ctx context.Context, task *contract.Task, mark string) bool {
	ctx, cancel := context.WithDeadline(ctx, task.Deadline.Add(deliveryGrace))
	defer cancel()
	for {
		switch status := a.postResult(ctx, task, mark); status {
		case 0, http.StatusServiceUnavailable, http.StatusTooManyRequests:
			if !resilience.Sleep(ctx, retryDelay) {
				return false
			}
		default:
			a.ledger.recordCallback(callback{subtask: subtask{task.RequestID, task.Intent}, task: task.TaskID, mark: mark, status: status, at: time.Now()})
			return status == http.StatusOK
		}
	}
}

// postResult posts the result once and returns the status of the answer, 0 if there
// was none.
func (a *Agents) postResult(ctx context.Context, task *contract.Task, mark string) int {
	ctx, cancel := context.WithTimeout(ctx, process.IOTimeout)
	defer cancel()
	body := encodeResult(task.TaskID, mark, contract.ResultSuccess)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, task.Callback.URL, bytes.NewReader(body))
	if err != nil {
		return http.StatusNotFound // the URL is invalid
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+task.Callback.Token)
	resp, err := a.routers.Client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode
}

// ReleaseHeld unblocks held connections, and returns the tasks whose results are to be
// delivered.
func (a *Agents) ReleaseHeld() []contract.Task {
	a.releaseOnce.Do(func() { close(a.released) })
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heldTasks
}

// CountHeld returns the number of tasks accepted with 202 that wait for ReleaseHeld.
func (a *Agents) CountHeld() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.heldTasks)
}

func encodeResult(task, mark string, status contract.ResultStatus) []byte {
	return encodeJSON(contract.Result{
		TaskID: task, Status: status,
		Data: map[string]json.RawMessage{markMember: encodeJSON(mark)},
	})
}

// encodeJSON panics if v cannot be encoded.
func encodeJSON(v any) []byte {
	data, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func isIdempotent(agent string) bool { return !strings.HasPrefix(agent, "once") && agent != AsyncAgent }
