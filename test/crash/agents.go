package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// How long agents take, at most.
const (
	longestWork  = 120 * time.Millisecond // before they answer
	longestLater = 600 * time.Millisecond // from 202 to the callback
	betweenTries = 30 * time.Millisecond  // of a callback while nobody listens
	giveUpAfter  = time.Minute            // behind a task's deadline
	ioTimeout    = 10 * time.Second       // of whatever stands still
)

// The names under which a request's inputs tell agents what to do with it.
const (
	inputKey  = "key"  // the Idempotency-Key it was sent with
	inputHold = "hold" // keep it until agents.release
)

// agents are all agents of a run, on one listener. They outlive every router.
type agents struct {
	ledger *ledger
	dice   *dice
	door   *door
	group  *run.Group
	base   string // http://host:port
	serial atomic.Int64
	busy   atomic.Int64 // held connections
	owed   atomic.Int64 // callbacks that are not answered for good

	mu       sync.Mutex
	held     []contract.Task // accepted with 202, not to be delivered yet
	freed    sync.Once
	released chan struct{} // closed by release
	started  func(at time.Time)
}

// startAgents serves them until ctx ends; group owns what they do meanwhile.
func startAgents(ctx context.Context, group *run.Group, l *ledger, d *dice, to *door) (*agents, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &agents{
		ledger: l, dice: d, door: to, group: group,
		base: "http://" + listener.Addr().String(), released: make(chan struct{}),
	}
	mux := http.NewServeMux()
	for _, id := range []string{plainAgent, onceAgent, onceStandby, laterAgent, shakyAgent, spareAgent} {
		mux.HandleFunc("POST /"+id, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, id) })
		mux.HandleFunc("POST /"+id+"/{task}/cancel", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: ioTimeout}
	group.Go("agents", func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go("stop the agents", func(ctx context.Context) error {
		<-ctx.Done()
		return server.Close()
	})
	return a, nil
}

// serve takes one task. It is an execution from the moment it has been read.
func (a *agents) serve(w http.ResponseWriter, r *http.Request, agent string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the router was killed while it sent the task: nothing was begun
	}
	var task contract.Task
	if err := strictjson.UnmarshalAllowUnknown(body, &task); err != nil {
		a.ledger.wonder("", fmt.Sprintf("%s was sent what is no task: %v", agent, err))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.began(time.Now())
	a.ledger.stands(textOf(task.Inputs[inputKey]), task.RequestID)
	e := execution{
		part: part{task.RequestID, task.Intent}, task: task.TaskID, agent: agent,
		mark: a.newMark(agent), repeatable: repeatable(agent),
	}
	switch agent {
	case laterAgent:
		a.later(w, &task, e)
	case shakyAgent:
		a.shaky(w, r, e)
	case onceAgent:
		e.failed = a.dice.one(8)
		a.ledger.began(e)
		a.reply(w, r, e)
	default:
		a.ledger.began(e)
		if _, hold := task.Inputs[inputHold]; hold {
			a.hold(r)
		}
		a.reply(w, r, e)
	}
}

// newMark makes a mark that no other result has.
func (a *agents) newMark(agent string) string { return fmt.Sprintf("%s-%d", agent, a.serial.Add(1)) }

// reply answers with a result after a while.
func (a *agents) reply(w http.ResponseWriter, r *http.Request, e execution) {
	if !pause(r.Context(), a.dice.upTo(longestWork)) {
		return
	}
	status := contract.ResultSuccess
	if e.failed {
		status = contract.ResultFailure
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(resultOf(e.task, e.mark, status)) // a router that was killed does not read it
}

// shaky is idempotent, and fails in several ways.
func (a *agents) shaky(w http.ResponseWriter, r *http.Request, e execution) {
	way := a.dice.below(8)
	e.failed = way < 4
	a.ledger.began(e)
	switch way {
	case 0:
		panic(http.ErrAbortHandler) // the connection breaks
	case 1:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		a.reply(w, r, e) // 2 and 3 say failure
	}
}

// later accepts the task and sends its result by callback; sometimes it sends
// another result at the same time, of which one may be taken.
func (a *agents) later(w http.ResponseWriter, task *contract.Task, e execution) {
	a.ledger.began(e)
	if task.Callback == nil {
		a.ledger.wonder(task.RequestID, "a task without a callback")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if _, hold := task.Inputs[inputHold]; hold {
		a.mu.Lock()
		a.held = append(a.held, *task)
		a.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	marks := []string{e.mark}
	if a.dice.one(4) {
		marks = append(marks, a.newMark(e.agent))
	}
	for _, mark := range marks {
		after := a.dice.upTo(longestLater)
		a.owed.Add(1)
		a.group.Go("callback of "+e.task, func(ctx context.Context) error {
			defer a.owed.Add(-1)
			if pause(ctx, after) {
				a.deliver(ctx, task, mark)
			}
			return nil
		})
	}
}

// deliver posts the result until it is answered for good, and reports whether it
// was accepted.
func (a *agents) deliver(ctx context.Context, task *contract.Task, mark string) bool {
	ctx, cancel := context.WithDeadline(ctx, task.Deadline.Add(giveUpAfter))
	defer cancel()
	for {
		switch status := a.callBack(ctx, task, mark); status {
		case 0, http.StatusServiceUnavailable, http.StatusTooManyRequests:
			if !pause(ctx, betweenTries) {
				return false
			}
		default:
			a.ledger.told(callback{part: part{task.RequestID, task.Intent}, task: task.TaskID, mark: mark, status: status})
			return status == http.StatusOK
		}
	}
}

// callBack posts the result once and returns the status of the answer, 0 for none.
func (a *agents) callBack(ctx context.Context, task *contract.Task, mark string) int {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	body := resultOf(task.TaskID, mark, contract.ResultSuccess)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, task.Callback.URL, bytes.NewReader(body))
	if err != nil {
		return http.StatusNotFound // there is no such place
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+task.Callback.Token)
	resp, err := a.door.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode
}

// idle waits until no callback is under way, or the time is up.
func (a *agents) idle(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for a.owed.Load() > 0 && pause(ctx, betweenTries) {
	}
}

// hold keeps a connection until release, or until the router is gone.
func (a *agents) hold(r *http.Request) {
	a.busy.Add(1)
	defer a.busy.Add(-1)
	select {
	case <-a.released:
	case <-r.Context().Done():
	}
}

// release lets all go that is held, and returns the tasks whose results are due.
func (a *agents) release() []contract.Task {
	a.freed.Do(func() { close(a.released) })
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// holding counts the tasks that were accepted and the connections that are held.
func (a *agents) holding() (accepted, connections int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.held), int(a.busy.Load())
}

// onNext has fn called with the time of the next execution.
func (a *agents) onNext(fn func(at time.Time)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started = fn
}

func (a *agents) began(at time.Time) {
	a.mu.Lock()
	fn := a.started
	a.started = nil
	a.mu.Unlock()
	if fn != nil {
		fn(at)
	}
}

// resultOf encodes a Result that holds the mark.
func resultOf(task, mark string, status contract.ResultStatus) []byte {
	return encode(contract.Result{
		TaskID: task, Status: status,
		Data: map[string]json.RawMessage{markName: encode(mark)},
	})
}

// encode makes JSON of values that have one.
func encode(v any) []byte {
	data, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func repeatable(agent string) bool { return !strings.HasPrefix(agent, "once") && agent != laterAgent }
