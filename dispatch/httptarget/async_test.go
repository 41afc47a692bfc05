package httptarget_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/testkit"
)

// withAwaitResult lets the agent answer the Call asynchronously. The target does not wait for the
// result; the dispatcher does.
func withAwaitResult(c *dispatch.Call) {
	c.AwaitResult = func(context.Context) dispatch.Outcome { panic("the target does not wait") }
}

func publicURL(url string) func(*httptarget.Config) {
	return func(c *httptarget.Config) { c.PublicURL = func() string { return url } }
}

const routerURL = "https://router.example/sub/"

func TestTarget_SendsCallback(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change []func(*httptarget.Config)
		call   func(*dispatch.Call)
		want   string // "" = no callback
	}{
		{"result awaited", []func(*httptarget.Config){publicURL(routerURL)}, withAwaitResult, "https://router.example/sub/api/v1/tasks/" + taskID + "/result"},
		{"public URL without a slash", []func(*httptarget.Config){publicURL("http://127.0.0.1:8080")}, withAwaitResult, "http://127.0.0.1:8080/api/v1/tasks/" + taskID + "/result"},
		{"result not awaited", []func(*httptarget.Config){publicURL(routerURL)}, func(*dispatch.Call) {}, ""},
		{"public URL not known yet", []func(*httptarget.Config){publicURL("")}, withAwaitResult, ""},
		{"no public URL", nil, withAwaitResult, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAgent(t, answering(http.StatusOK, successBody))
			signer := newSigner(t)
			c := newCall(a.URL, tc.call)
			c.Task.Deadline = time.Now().Add(10 * time.Second)
			checkOutcome(t, execute(t, newTargetWith(t, signer, tc.change...), c), want{attempts: 1, health: dispatch.HealthGood})
			got := a.received()[0].Callback
			if tc.want == "" {
				if got != nil {
					t.Errorf("got callback %+v, want none", got)
				}
				return
			}
			if got == nil || got.URL != tc.want {
				t.Fatalf("got callback %+v, want the address %s", got, tc.want)
			}
			grant, err := signer.VerifyTaskToken("caprouter", got.Token, time.Now())
			if err != nil {
				t.Fatalf("token of the callback: %v", err)
			}
			want := contract.TaskGrant{
				AgentID: "quality_agent", RequestID: "r1", TaskID: taskID,
				Expires: time.Unix(c.Task.Deadline.Add(30*time.Second).Unix(), 0),
			}
			if diff := cmp.Diff(want, grant); diff != "" {
				t.Errorf("grant (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTarget_AcceptedTaskIsPending(t *testing.T) {
	for name, kind := range map[string]func(*dispatch.Call){"once": func(*dispatch.Call) {}, "twice": idempotent} {
		for body, text := range map[string]string{"no body": "", "a body": `{"status":"accepted"}`, "a long body": strings.Repeat("x", 8<<20)} {
			t.Run(name+", "+body, func(t *testing.T) {
				a := newAgent(t, answering(http.StatusAccepted, text))
				target := newTarget(t, publicURL(routerURL))
				got := execute(t, target, newCall(a.URL, kind, withAwaitResult))
				if !got.Pending || got.Result != nil || got.Err != nil || got.Attempts != 1 || got.MayHaveExecuted || got.Health != dispatch.HealthGood {
					t.Errorf("got %+v with %+v, want pending after one attempt, and good health", got, got.Err)
				}
				target.Close()
				if stops := a.stopped(); len(stops) != 0 {
					t.Errorf("got cancellations %v, want none", stops)
				}
			})
		}
	}
}

// If an agent accepts a task without a callback, its result cannot be delivered, so the task is
// cancelled.
func TestTarget_AcceptedWithoutCallbackIsCancelled(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*httptarget.Config)
		call   func(*dispatch.Call)
		detail string
	}{
		{"result not awaited", publicURL(routerURL), func(*dispatch.Call) {}, "is not awaited"},
		{"no address", publicURL(""), withAwaitResult, "public_url"},
	} {
		for kind, uncertain := range map[string]bool{"once": true, "twice": false} {
			t.Run(tc.name+" "+kind, func(t *testing.T) {
				a := newAgent(t, answering(http.StatusAccepted, ""))
				target := newTarget(t, tc.change)
				c := newCall(a.URL, tc.call)
				c.Agent.Endpoint.Idempotent = !uncertain
				checkOutcome(t, execute(t, target, c), want{contract.TaskBadResult, tc.detail, 1, uncertain, dispatch.HealthBad})
				target.Close()
				if got := len(a.stopped()); got != 1 {
					t.Errorf("got %d cancellations, want 1", got)
				}
			})
		}
	}
}

// Accepted work can take until the request's deadline; the agent's timeout and the share of an
// attempt limit only the time until its first response.
func TestTarget_AsyncTaskHasDeadlineOfRequest(t *testing.T) {
	for _, tc := range []struct {
		name string
		call func(*dispatch.Call)
		want time.Duration
	}{
		{"asynchronous", withAwaitResult, time.Hour},
		{"synchronous, a quarter of the agent's timeout", func(*dispatch.Call) {}, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				n := newNetwork()
				a := n.newAgent(t, answering(http.StatusOK, successBody))
				target := n.newTarget(t, publicURL(routerURL))
				checkOutcome(t, target.Execute(ctx, newCall(a.URL, idempotent, withStandbys(2), timeout(4*time.Second), tc.call)), want{attempts: 1, health: dispatch.HealthGood})
				if got := a.received()[0].Deadline.Sub(start); got != tc.want {
					t.Errorf("got deadline in %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// If the second attempt is accepted, the task is not cancelled because of the
// first one.
func TestTarget_AcceptedAtSecondAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var requests atomic.Int64
		a := n.newAgent(t, func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) == 1 {
				<-r.Context().Done()
				return
			}
			w.WriteHeader(http.StatusAccepted)
		})
		target := n.newTarget(t, publicURL(routerURL))
		got := execute(t, target, newCall(a.URL, idempotent, withAwaitResult, timeout(2*time.Second)))
		if !got.Pending || got.Attempts != 2 {
			t.Fatalf("got %+v with %+v, want pending after two attempts", got, got.Err)
		}
		target.Close()
		if stops := a.stopped(); len(stops) != 0 {
			t.Errorf("got cancellations %v, want none, because the agent works on the task", stops)
		}
		tasks := a.received()
		if diff := cmp.Diff(tasks[0].Callback, tasks[1].Callback); diff != "" {
			t.Errorf("the callbacks of the attempts differ (-first +second):\n%s", diff)
		}
	})
}

func TestTarget_ContinuesAttemptCount(t *testing.T) {
	for _, tc := range []struct {
		name   string
		first  int
		status int
		sent   []int
		want   int
	}{
		{"from 0", 0, 200, []int{1}, 1},
		{"from 1", 1, 503, []int{1, 2}, 2},
		{"from 2", 2, 200, []int{2}, 2},
		{"from 3", 3, 503, []int{3, 4}, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAgent(t, answering(tc.status, successBody))
			c := newCall(a.URL, idempotent)
			c.Task.Attempt = tc.first
			if got := execute(t, newTarget(t), c).Attempts; got != tc.want {
				t.Errorf("got %d attempts, want %d", got, tc.want)
			}
			var sent []int
			for _, task := range a.received() {
				sent = append(sent, task.Attempt)
			}
			if diff := cmp.Diff(tc.sent, sent); diff != "" {
				t.Errorf("attempts seen by the agent (-want +got):\n%s", diff)
			}
		})
	}
}

// noTaskTokens issues agent tokens only.
type noTaskTokens struct{ httptarget.TokenSource }

func (noTaskTokens) TaskToken(string, contract.TaskGrant) (string, error) {
	return "", errors.New("hunter2")
}

func TestTarget_FailsWithoutTaskToken(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	target := newTargetWith(t, noTaskTokens{newSigner(t)}, publicURL(routerURL))
	got := execute(t, target, newCall(a.URL, withAwaitResult))
	checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "no token could be made for quality_agent"})
	if len(a.received()) != 0 || strings.Contains(got.Err.Detail, "hunter2") {
		t.Errorf("got %d tasks sent and the detail %q, want none and no text that is only for the log", len(a.received()), got.Err.Detail)
	}
}

// Each task has its own task token, even if agent tokens are reused.
func TestTokenCache_NeverReusesTaskTokens(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	source := &countingSource{source: newSigner(t)}
	target := newTargetWith(t, source, publicURL(routerURL), func(c *httptarget.Config) { c.TokenReuse = time.Hour })
	for range 3 {
		execute(t, target, newCall(a.URL, withAwaitResult))
	}
	if got := source.count(); got != 1 || len(source.taskGrants) != 3 {
		t.Errorf("got %d agent tokens and %d task tokens, want 1 and 3", got, len(source.taskGrants))
	}
}

func TestTarget_CancelTaskSendsRequest(t *testing.T) {
	var log bytes.Buffer
	logged := func(c *httptarget.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
	for _, reuse := range []time.Duration{0, time.Hour} {
		t.Run("reuse "+reuse.String(), func(t *testing.T) {
			var token atomic.Pointer[string]
			a := newAgent(t, answering(http.StatusAccepted, ""))
			a.Config.Handler = recordToken(a.Config.Handler, &token)
			source := &countingSource{source: newSigner(t)}
			target := newTargetWith(t, source, logged, func(c *httptarget.Config) { c.TokenReuse = reuse })
			c := newCall(a.URL + "/tasks?tenant=x")
			c.Task = contract.Task{TaskID: taskID, RequestID: "r1", TraceID: traceID} // the fields that are known after a restart
			target.CancelTask(c)
			target.Close()
			if diff := cmp.Diff([]string{"/tasks/" + taskID + "/cancel"}, a.stopped()); diff != "" {
				t.Errorf("cancellations (-want +got):\n%s", diff)
			}
			want := issuance.AgentGrant{Issuer: "caprouter", AgentID: "quality_agent", Subject: "alice", TaskID: taskID}
			if reuse > 0 {
				want.TaskID = ""
			}
			got := source.grants[0]
			got.Expires = time.Time{}
			if diff := cmp.Diff(want, got); diff != "" || token.Load() == nil || *token.Load() == "" {
				t.Errorf("grant of the cancellation's token (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("agent without an address", func(t *testing.T) {
		target := newTargetWith(t, failingSource{}, logged)
		target.CancelTask(newCall("smoke://signal"))
		target.CancelTask(newCall("http://127.0.0.1:1"))
		if got := strings.Count(log.String(), "cannot cancel a task at its agent"); got != 2 {
			t.Errorf("got log %q, want two lines about the address", log.String())
		}
	})
}

// recordToken stores the Authorization header of each request.
func recordToken(next http.Handler, token *atomic.Pointer[string]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value := r.Header.Get("Authorization")
		token.Store(&value)
		next.ServeHTTP(w, r)
	})
}

// A 202 without a body leaves the connection open for the next task.
func TestTarget_AcceptedTaskKeepsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var connections, tasks atomic.Int64
		url := n.rawAgent(t, func(conn net.Conn, _ int) {
			connections.Add(1)
			for readRequest(conn) {
				tasks.Add(1)
				_, _ = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
			}
		})
		target := n.newTarget(t, publicURL(routerURL))
		for range 3 {
			if got := execute(t, target, newCall(url, withAwaitResult)); !got.Pending {
				t.Fatalf("got outcome %+v, want pending", got)
			}
		}
		if connections.Load() != 1 || tasks.Load() != 3 {
			t.Errorf("got %d tasks on %d connections, want three on one", tasks.Load(), connections.Load())
		}
	})
}

// End to end with an agentkit agent: it accepts the task, reports progress, and delivers its result
// with the task token, or the task is cancelled after the caller disconnects.
func TestTarget_AsyncResultWithAgentkit(t *testing.T) {
	for _, tc := range []struct {
		name    string
		deliver bool
		code    contract.TaskCode
	}{{"delivered", true, ""}, {"the caller disconnects", false, contract.TaskWasCancelled}} {
		t.Run(tc.name, func(t *testing.T) {
			signer := newSigner(t)
			results, progress := make(chan contract.Result, 1), make(chan string, 1)
			mux := http.NewServeMux()
			mux.HandleFunc("GET /.well-known/jwks.json", answering(http.StatusOK, string(signer.keys.JWKS())))
			mux.HandleFunc("POST /api/v1/tasks/{id}/{what}", func(w http.ResponseWriter, r *http.Request) {
				grant, err := signer.VerifyTaskToken("caprouter", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), time.Now())
				if err != nil || grant.TaskID != r.PathValue("id") || grant.AgentID != "quality_agent" {
					t.Errorf("grant = %+v, %v", grant, err)
				}
				body, _ := io.ReadAll(r.Body)
				if r.PathValue("what") == "progress" {
					progress <- string(body)
					return
				}
				var res contract.Result
				if err := json.Unmarshal(body, &res); err != nil {
					t.Errorf("result %s: %v", body, err)
				}
				results <- res
			})
			router := httptest.NewServer(mux)
			defer router.Close()

			waiting, ended := make(chan struct{}), make(chan error, 1)
			agent, err := agentkit.New(agentkit.Config{AgentID: "quality_agent", JWKSURL: router.URL + "/.well-known/jwks.json", Client: router.Client()},
				func(ctx context.Context, _ contract.Task) (contract.Result, error) {
					agentkit.AcceptAsync(ctx)
					agentkit.Progress(ctx, "half", 50)
					select {
					case <-waiting:
					case <-ctx.Done():
					}
					if tc.deliver {
						return agentkit.Answer("done"), nil
					}
					<-ctx.Done()
					ended <- ctx.Err()
					return contract.Result{}, ctx.Err()
				})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(agent)
			defer server.Close()

			d, _ := newDispatcher(t, newTargetWith(t, signer, publicURL(router.URL)))
			ctx, leave := context.WithTimeout(t.Context(), time.Minute)
			defer leave()
			c := newCall(server.URL)
			c.AwaitResult = func(ctx context.Context) dispatch.Outcome {
				// Before the work ends, because progress of a cancelled task is dropped.
				if got := testkit.Receive(t, progress); got != `{"message":"half","percent":50}` {
					t.Errorf("progress = %s", got)
				}
				close(waiting)
				if !tc.deliver {
					leave()
				}
				select {
				case res := <-results:
					return dispatch.Outcome{Result: &res}
				case <-ctx.Done():
					return dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskWasCancelled}}
				}
			}
			out := d.Send(ctx, c)
			if tc.deliver && (out.Result == nil || out.Result.Text() != "done" || out.Result.TaskID != taskID) {
				t.Errorf("got %+v, want the result", out)
			}
			if !tc.deliver {
				if out.Err == nil || out.Err.Code != tc.code {
					t.Errorf("got %+v, want %s", out, tc.code)
				}
				if got := testkit.Receive(t, ended); !errors.Is(got, context.Canceled) {
					t.Errorf("got work ended with %v, want cancelled", got)
				}
			}
			if err := agent.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
