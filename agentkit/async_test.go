package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

func TestAcceptAsync_DeliversResultToCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeCallbackServer()
		a := d.agent(t, nil, slow)
		checkAccepted(t, serve(a, d.post(d.task())))
		if got := d.received(); len(got) != 0 {
			t.Fatalf("got %+v at the router before the end of the work, want nothing", got)
		}
		if err := a.Shutdown(t.Context()); err != nil {
			t.Fatalf("Shutdown = %v", err)
		}
		want := []callbackPost{{resultURL, "task-token", doneBody, 10 * time.Second}}
		if diff := cmp.Diff(want, d.received()); diff != "" {
			t.Errorf("callbacks (-want +got):\n%s", diff)
		}
		// A repeated task is answered from the cache.
		if res := result(t, serve(a, d.post(d.task()))); res.Text() != "done" {
			t.Errorf("repeated task: got %+v, want the result", res)
		}
		if err := a.Shutdown(t.Context()); err != nil || len(d.received()) != 1 {
			t.Errorf("Shutdown: got %v with %d callbacks, want one", err, len(d.received()))
		}
	})
}

func TestAgent_AcceptsAfterAsyncAfter(t *testing.T) {
	after := func(d time.Duration) func(*agentkit.Config) {
		return func(c *agentkit.Config) { c.AsyncAfter = d }
	}
	quick := func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		return agentkit.Answer("done"), nil
	}
	waiting := func(ctx context.Context, _ contract.Task) (contract.Result, error) { // does not call AcceptAsync
		<-time.After(10 * time.Second)
		return agentkit.Answer("done"), nil
	}
	for _, tc := range []struct {
		name     string
		work     agentkit.Work
		change   func(*agentkit.Config)
		callback bool
		status   int
		after    time.Duration // time until the response
		posts    int
	}{
		{"immediate result", quick, after(time.Second), true, 200, 0, 0},
		{"no limit", waiting, after(0), true, 200, 10 * time.Second, 0},
		{"longer than AsyncAfter", waiting, after(2 * time.Second), true, 202, 2 * time.Second, 1},
		{"shorter than AsyncAfter", waiting, after(11 * time.Second), true, 200, 10 * time.Second, 0},
		{"AcceptAsync", slow, after(0), true, 202, 0, 1},
		{"longer than AsyncAfter without a callback", waiting, after(2 * time.Second), false, 200, 10 * time.Second, 0},
		{"AcceptAsync without a callback", slow, after(0), false, 200, 10 * time.Second, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeCallbackServer()
				a := d.agent(t, nil, tc.work, tc.change)
				task := d.task()
				if !tc.callback {
					task = validTask()
				}
				w := serve(a, d.post(task))
				if took := time.Since(d.began); w.Code != tc.status || took != tc.after {
					t.Errorf("got status %d after %v, want %d after %v", w.Code, took, tc.status, tc.after)
				}
				if err := a.Shutdown(t.Context()); err != nil || len(d.received()) != tc.posts {
					t.Errorf("Shutdown: got %v and %d callbacks, want %d", err, len(d.received()), tc.posts)
				}
			})
		})
	}
}

func TestAcceptAsync_ReportsIfAccepted(t *testing.T) {
	if agentkit.AcceptAsync(t.Context()) {
		t.Error("AcceptAsync outside of a task: got true, want false")
	}
	for callback, want := range map[bool]bool{true: true, false: false} {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeCallbackServer()
			a := d.agent(t, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
				for range 2 {
					if got := agentkit.AcceptAsync(ctx); got != want {
						t.Errorf("AcceptAsync with callback %v: got %v, want %v", callback, got, want)
					}
				}
				return agentkit.Answer("done"), nil
			})
			task := d.task()
			if !callback {
				task = task.with("callback", nil)
			}
			serve(a, d.post(task))
			if err := a.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A repeated request for asynchronous work gets 202 again.
func TestAgent_RepeatedAsyncTaskIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeCallbackServer()
		a := d.agent(t, nil, slow)
		for range 3 {
			checkAccepted(t, serve(a, d.post(d.task())))
		}
		if err := a.Shutdown(t.Context()); err != nil || len(d.received()) != 1 {
			t.Errorf("Shutdown: got %v and %d callbacks, want one", err, len(d.received()))
		}
	})
}

// If the connection breaks, the result is sent to the callback.
func TestAgent_DeliversResultAfterConnectionLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeCallbackServer()
		a := d.agent(t, nil, func(context.Context, contract.Task) (contract.Result, error) {
			<-time.After(10 * time.Second)
			return agentkit.Answer("done"), nil
		})
		ctx, disconnect := context.WithTimeout(t.Context(), time.Second)
		defer disconnect()
		a.ServeHTTP(httptest.NewRecorder(), d.post(d.task()).WithContext(ctx))
		if err := a.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []callbackPost{{resultURL, "task-token", doneBody, 10 * time.Second}}
		if diff := cmp.Diff(want, d.received()); diff != "" {
			t.Errorf("callbacks (-want +got):\n%s", diff)
		}
	})
}

func TestAgent_DoesNotDeliverCancelledTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeCallbackServer()
		a := d.agent(t, nil, slow)
		checkAccepted(t, serve(a, d.post(d.task())))
		if w := serve(a, post("/"+taskID+"/cancel", d.router.token(validClaims()), "")); w.Code != http.StatusNoContent {
			t.Fatalf("cancel = %d", w.Code)
		}
		if err := a.Shutdown(t.Context()); err != nil || len(d.received()) != 0 {
			t.Errorf("Shutdown: got %v and %d callbacks, want none", err, len(d.received()))
		}
	})
}

func TestAgent_DeadlineEndsAsyncWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeCallbackServer()
		a := d.agent(t, nil, slow)
		checkAccepted(t, serve(a, d.post(d.task().with("deadline", time.Now().Add(3*time.Second)))))
		if err := a.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		posts := d.received()
		if len(posts) != 1 || posts[0].At != 3*time.Second || !strings.Contains(posts[0].Body, "not done by its deadline") {
			t.Errorf("got %+v at the router, want a failure at the deadline", posts)
		}
	})
}

func TestShutdown_WaitsForAsyncWork(t *testing.T) {
	for _, tc := range []struct {
		name  string
		work  agentkit.Work
		after time.Duration // time until Shutdown returns
		posts int
	}{
		{"work stops in time", slow, 3 * time.Second, 1},
		{"work does not stop", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
			agentkit.AcceptAsync(ctx)
			<-time.After(10 * time.Second)
			return agentkit.Answer("done"), nil
		}, 5 * time.Second, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeCallbackServer()
				d.answer = statuses(503) // the time suffices for one attempt
				a := d.agent(t, nil, tc.work)
				checkAccepted(t, serve(a, d.post(d.task())))
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				if err := a.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown: got %v, want the error of its context", err)
				}
				if took := time.Since(d.began); took != tc.after || len(d.received()) != tc.posts {
					t.Errorf("got Shutdown after %v with %d callbacks, want %v with %d", took, len(d.received()), tc.after, tc.posts)
				}
				if err := a.Shutdown(t.Context()); err != nil { // ends the goroutines of the bubble; Shutdown may be called twice
					t.Error(err)
				}
			})
		})
	}
}

// Failures of asynchronous work are delivered like any other result.
func TestAgent_DeliversAsyncFailures(t *testing.T) {
	for name, work := range map[string]agentkit.Work{
		"error": func(ctx context.Context, _ contract.Task) (contract.Result, error) {
			agentkit.AcceptAsync(ctx)
			return contract.Result{}, errors.New("hunter2")
		},
		"panic": func(ctx context.Context, _ contract.Task) (contract.Result, error) {
			agentkit.AcceptAsync(ctx)
			panic("hunter2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeCallbackServer()
				a := d.agent(t, nil, work)
				serve(a, d.post(d.task()))
				if err := a.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				posts := d.received()
				if len(posts) != 1 || strings.Contains(posts[0].Body, "hunter2") || !strings.Contains(posts[0].Body, `"failure"`) {
					t.Errorf("got %+v at the router, want a failure without the error's text", posts)
				}
			})
		})
	}
}

// Send many tasks concurrently over real connections: each result arrives once.
func TestAgent_DeliversConcurrentResults(t *testing.T) {
	const tasks = 200
	var mu sync.Mutex
	got := map[string]int{}
	keys := newKeyOnly()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/jwks.json", keys.ServeHTTP)
	mux.HandleFunc("POST /api/v1/tasks/{id}/{what}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.PathValue("what") == "result" {
			mu.Lock()
			got[r.PathValue("id")]++
			mu.Unlock()
		}
	})
	router := httptest.NewServer(mux)
	defer router.Close()
	a := newAgent(t, nil, nil, func(ctx context.Context, t contract.Task) (contract.Result, error) {
		agentkit.Progress(ctx, "begun", 0)
		agentkit.AcceptAsync(ctx)
		return agentkit.Answer(t.TaskID), nil
	}, func(c *agentkit.Config) {
		c.JWKSURL, c.Client = router.URL+"/.well-known/jwks.json", router.Client()
	})
	var wg sync.WaitGroup
	for i := range tasks {
		wg.Go(func() {
			id := fmt.Sprintf("t%d", i)
			task := validTask().with("task_id", id).with("callback", object{"url": router.URL + "/api/v1/tasks/" + id + "/result", "token": "x"})
			w := serve(a, post("/", keys.token(validClaims().with("task_id", nil)), task.json()))
			if w.Code != 200 && w.Code != 202 {
				t.Errorf("task %s: %d %s", id, w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		if n := got[fmt.Sprintf("t%d", i)]; n != 1 {
			t.Errorf("got the result of t%d %d times, want once", i, n)
		}
	}
}
