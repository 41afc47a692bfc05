package agentkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// For any outcome of the work, the router gets a valid Result that contains no text of an error or
// a panic.
func TestAgent_MapsWorkOutcomeToResult(t *testing.T) {
	const secret = "dial tcp 10.0.0.3: password hunter2"
	failure := func(why string) contract.Result {
		return contract.Result{TaskID: taskID, Status: contract.ResultFailure, Explanations: []string{why}}
	}
	for _, tc := range []struct {
		name   string
		work   func() (contract.Result, error)
		want   contract.Result
		logged string
	}{
		{
			"returns partial",
			func() (contract.Result, error) { return contract.Result{Status: contract.ResultPartial}, nil },
			contract.Result{TaskID: taskID, Status: contract.ResultPartial},
			"",
		},
		{
			"returns an empty Result", func() (contract.Result, error) { return contract.Result{}, nil },
			contract.Result{TaskID: taskID, Status: contract.ResultSuccess},
			"",
		},
		{"returns a failure", func() (contract.Result, error) { return agentkit.Failure("not a CSV"), nil }, failure("not a CSV"), ""},
		{
			"returns another task id", func() (contract.Result, error) { return contract.Result{TaskID: "other"}, nil },
			contract.Result{TaskID: taskID, Status: contract.ResultSuccess},
			"",
		},
		{
			"fails", func() (contract.Result, error) { return agentkit.Answer("half"), errors.New(secret) },
			failure("the agent could not do this task"), "hunter2",
		},
		{"panics", func() (contract.Result, error) { panic(secret) }, failure("the agent could not do this task"), "hunter2"},
		{"panics with an error", func() (contract.Result, error) { panic(errors.New(secret)) }, failure("the agent could not do this task"), "work_test.go"},
		{
			"returns an unknown status", func() (contract.Result, error) { return contract.Result{Status: "great"}, nil },
			failure("the agent's result could not be sent"), "none of success",
		},
		{
			"returns a NaN", func() (contract.Result, error) {
				return contract.Result{Metrics: map[string]float64{"x": math.NaN()}}, nil
			}, failure("the agent's result could not be sent"), "NaN",
		},
		{
			"returns invalid JSON", func() (contract.Result, error) {
				return contract.Result{Data: map[string]json.RawMessage{"x": json.RawMessage("{")}}, nil
			}, failure("the agent's result could not be sent"), "result not sent",
		},
		{
			"returns a long text", func() (contract.Result, error) { return agentkit.Answer(strings.Repeat("x", 4<<20)), nil },
			failure("the agent's result could not be sent"), "more than the router reads",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			router := newFakeRouter(t)
			h := newAgent(t, router, &log, func(context.Context, contract.Task) (contract.Result, error) { return tc.work() })
			w := serve(h, post("/", router.token(validClaims()), validTask().json()))
			if diff := cmp.Diff(tc.want, result(t, w)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("got the error in the response: %s", w.Body)
			}
			if tc.logged == "" && log.Len() > 0 || !strings.Contains(log.String(), tc.logged) {
				t.Errorf("got log %q, want it to contain %q", log.String(), tc.logged)
			}
		})
	}
}

// gate is a work function that signals its start and blocks until open is closed.
type gate struct {
	begun chan string
	open  chan struct{}
	runs  atomic.Int64
	ended atomic.Pointer[error] // the cause, if the context ended first
}

func newGate() *gate { return &gate{begun: make(chan string, 16), open: make(chan struct{})} }

func (g *gate) work(ctx context.Context, t contract.Task) (contract.Result, error) {
	g.runs.Add(1)
	g.begun <- t.TaskID
	select {
	case <-g.open:
		return agentkit.Answer("done"), nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		g.ended.Store(&err)
		return contract.Result{}, err
	}
}

func TestAgent_ExecutesTaskOnce(t *testing.T) {
	router, g := newFakeRouter(t), newGate()
	h := newAgent(t, router, nil, g.work)
	answers := make([]contract.Result, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			answers[i] = result(t, serve(h, post("/", router.token(validClaims()), validTask().json())))
		})
	}
	testkit.Receive(t, g.begun)
	close(g.open)
	wg.Wait()
	late := result(t, serve(h, post("/", router.token(validClaims()), validTask().json())))
	for i, got := range slices.Concat(answers, []contract.Result{late}) {
		if got.Text() != "done" {
			t.Errorf("result %d: got %+v, want that of the only run", i, got)
		}
	}
	if got := g.runs.Load(); got != 1 {
		t.Errorf("got %d runs of the work, want one", got)
	}
}

// Two callers may use the same task id for different tasks.
func TestAgent_SeparatesCallers(t *testing.T) {
	router := newFakeRouter(t)
	h := newAgent(t, router, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		return agentkit.Answer("for " + agentkit.Caller(ctx)), nil
	})
	for _, caller := range []string{"alice", "bob", "alice"} {
		token := router.token(validClaims().with("sub", caller).with("task_id", nil))
		res := result(t, serve(h, post("/", token, validTask().json())))
		if got := res.Text(); got != "for "+caller {
			t.Errorf("%s: got result %q, want its own", caller, got)
		}
	}
}

// Callers with the same subject and another issuer or tenant are separated as well.
func TestAgent_SeparatesIssuersAndTenants(t *testing.T) {
	router := newFakeRouter(t)
	h := newAgent(t, router, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		if agentkit.Caller(ctx) != "alice" {
			t.Errorf("caller: got %q, want alice", agentkit.Caller(ctx))
		}
		return agentkit.Answer(fmt.Sprintf("%+v", agentkit.CallerIdentity(ctx))), nil
	})
	of := func(issuer string) object { return object{"format": "iss_sub", "iss": issuer, "sub": "alice"} }
	for range 2 { // the second time, the results come from the cache
		for _, tc := range []struct {
			subjectID, tenant any
			want              agentkit.Identity
		}{
			{nil, nil, agentkit.Identity{Subject: "alice"}},
			{of("https://a.example"), nil, agentkit.Identity{Subject: "alice", Issuer: "https://a.example"}},
			{of("https://b.example").with("more", 1), nil, agentkit.Identity{Subject: "alice", Issuer: "https://b.example"}},
			{of("https://a.example"), "acme", agentkit.Identity{Subject: "alice", Issuer: "https://a.example", Tenant: "acme"}},
			{of("https://a.example"), "globex", agentkit.Identity{Subject: "alice", Issuer: "https://a.example", Tenant: "globex"}},
		} {
			token := router.token(validClaims().with("sub_id", tc.subjectID).with("tenant", tc.tenant).with("task_id", nil))
			res := result(t, serve(h, post("/", token, validTask().json())))
			if got, want := res.Text(), fmt.Sprintf("%+v", tc.want); got != want {
				t.Errorf("got result %s, want %s", got, want)
			}
		}
	}
	if got := agentkit.CallerIdentity(t.Context()); got != (agentkit.Identity{}) {
		t.Errorf("CallerIdentity of another context: got %+v, want the zero value", got)
	}
}

func TestAgent_CancelsTask(t *testing.T) {
	router, g := newFakeRouter(t), newGate()
	h := newAgent(t, router, nil, g.work)
	var wg sync.WaitGroup
	var res contract.Result
	wg.Go(func() { res = result(t, serve(h, post("/", router.token(validClaims()), validTask().json()))) })
	testkit.Receive(t, g.begun)
	for range 2 { // a second cancellation has no effect
		if w := serve(h, post("/"+taskID+"/cancel", router.token(validClaims()), "")); w.Code != 204 {
			t.Fatalf("cancel = %d %s, want 204", w.Code, w.Body)
		}
	}
	wg.Wait()
	if err := g.ended.Load(); err == nil || !errors.Is(*err, context.Canceled) {
		t.Errorf("context of the work: got %v, want cancelled", err)
	}
	want := contract.Result{TaskID: taskID, Status: contract.ResultFailure, Explanations: []string{"the task was cancelled"}}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// A cancelled task is not logged as an error, unless the work fails for another reason.
func TestAgent_DoesNotLogCancelAsError(t *testing.T) {
	for _, tc := range []struct {
		name  string
		err   func(ctx context.Context) error
		level string
	}{
		{"returns the cancellation", func(ctx context.Context) error { return fmt.Errorf("read the file: %w", ctx.Err()) }, "level=INFO msg=\"task cancelled\""},
		{"fails for another reason", func(context.Context) error { return errors.New("disk full") }, "level=ERROR msg=\"task failed\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			router, begun := newFakeRouter(t), make(chan struct{})
			h := newAgent(t, router, &log, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
				close(begun)
				<-ctx.Done()
				return contract.Result{}, tc.err(ctx)
			})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				serve(h, post("/", router.token(validClaims()), validTask().json()))
			}()
			testkit.WaitClosed(t, begun)
			serve(h, post("/"+taskID+"/cancel", router.token(validClaims()), ""))
			testkit.WaitClosed(t, ended)
			if !strings.Contains(log.String(), tc.level) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("got log %q, want one line with %s", log.String(), tc.level)
			}
		})
	}
}

// A token that is valid for several tasks cancels only those of its own caller.
func TestAgent_IgnoresCancelByOtherCaller(t *testing.T) {
	router, g := newFakeRouter(t), newGate()
	h := newAgent(t, router, nil, g.work)
	var wg sync.WaitGroup
	wg.Go(func() { result(t, serve(h, post("/", router.token(validClaims()), validTask().json()))) })
	testkit.Receive(t, g.begun)
	for name, value := range map[string]any{
		"sub": "bob", "tenant": "acme", "sub_id": object{"format": "iss_sub", "iss": "https://a.example", "sub": "alice"},
	} {
		serve(h, post("/"+taskID+"/cancel", router.token(validClaims().with(name, value).with("task_id", nil)), ""))
	}
	close(g.open)
	wg.Wait()
	if err := g.ended.Load(); err != nil {
		t.Errorf("got the work cancelled (%v) by another caller", *err)
	}
}

func TestAgent_CancelMayArriveBeforeTask(t *testing.T) {
	router, g := newFakeRouter(t), newGate()
	h := newAgent(t, router, nil, g.work)
	if w := serve(h, post("/"+taskID+"/cancel", router.token(validClaims()), "")); w.Code != 204 {
		t.Fatalf("cancel = %d %s, want 204", w.Code, w.Body)
	}
	res := result(t, serve(h, post("/", router.token(validClaims()), validTask().json())))
	if res.Status != contract.ResultFailure || g.runs.Load() != 0 {
		t.Errorf("got %+v after %d runs, want a failure without a run", res, g.runs.Load())
	}
}

func TestAgent_DeadlineEndsWork(t *testing.T) {
	router, g := newFakeRouter(t), newGate()
	h := newAgent(t, router, nil, g.work)
	// Fetch the keys first, because a synctest bubble cannot wait for real sockets.
	serve(h, post("/x/cancel", router.token(validClaims().with("task_id", nil)), ""))
	token, life := router.token(validClaims()), 300*time.Millisecond
	res := result(t, serve(h, post("/", token, validTask().with("deadline", time.Now().Add(life)).json())))
	want := contract.Result{TaskID: taskID, Status: contract.ResultFailure, Explanations: []string{"the task was not done by its deadline"}}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// A broken connection does not end the work: the second attempt gets its result.
func TestAgent_WorkSurvivesConnectionLoss(t *testing.T) {
	router, g := newFakeRouter(t), newGate()
	h := newAgent(t, router, nil, g.work)
	ctx, disconnect := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	first := httptest.NewRecorder()
	wg.Go(func() {
		h.ServeHTTP(first, post("/", router.token(validClaims()), validTask().json()).WithContext(ctx))
	})
	testkit.Receive(t, g.begun)
	disconnect()
	wg.Go(func() {
		// This request joins the work of the first one, and does not end it by disconnecting.
		gone, disconnectSecond := context.WithCancel(t.Context())
		disconnectSecond()
		h.ServeHTTP(httptest.NewRecorder(), post("/", router.token(validClaims()), validTask().json()).WithContext(gone))
	})
	second := make(chan contract.Result, 1)
	wg.Go(func() { second <- result(t, serve(h, post("/", router.token(validClaims()), validTask().json()))) })
	close(g.open)
	if got := testkit.Receive(t, second); got.Text() != "done" {
		t.Errorf("second attempt: got %+v, want the result of the work", got)
	}
	wg.Wait()
	if got := g.runs.Load(); got != 1 {
		t.Errorf("got %d runs of the work, want one", got)
	}
}

// If the work ends with runtime.Goexit, as with t.FailNow, the task still gets a response.
func TestAgent_WorkThatCallsGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, token := offlineAgent(t, func(context.Context, contract.Task) (contract.Result, error) {
			runtime.Goexit()
			return contract.Result{}, nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { serve(h, post("/", token, validTask().json())) })
		wg.Wait()
		res := result(t, serve(h, post("/", token, validTask().json())))
		if res.Status != contract.ResultFailure {
			t.Errorf("next attempt: got %+v, want a failure", res)
		}
	})
}
