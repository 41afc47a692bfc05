package httptarget_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/testkit"
)

// refusingURL is the URL of an agent that refuses connections.
const refusingURL = "http://" + testkit.RefusingAddress

func TestTarget_RetriesRefusedConnection(t *testing.T) {
	for name, kind := range map[string]func(*dispatch.Call){"once": func(*dispatch.Call) {}, "twice": idempotent} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, newTarget(t), newCall(refusingURL, kind))
			checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "quality_agent could not be reached: connection refused", attempts: 2, health: dispatch.HealthBad})
		})
	}
}

// resetConn resets the connection.
func resetConn(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// The agent closes or resets the connection at each stage of the exchange.
func TestTarget_ClosedConnectionIsOutcomeUnknown(t *testing.T) {
	for name, handle := range map[string]func(conn net.Conn){
		"closed after the request": func(conn net.Conn) { readRequest(conn) },
		"reset after the request": func(conn net.Conn) {
			readRequest(conn)
			resetConn(conn)
		},
		"reset in the request": func(conn net.Conn) {
			_, _ = io.ReadFull(conn, make([]byte, 10))
			resetConn(conn)
		},
		"reset in the header": func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX: y\r\n")
			resetConn(conn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int64
			url := rawAgent(t, func(conn net.Conn, _ int) {
				connections.Add(1)
				handle(conn)
			})
			got := execute(t, newTarget(t), newCall(url))
			checkOutcome(t, got, want{code: contract.TaskOutcomeUnknown, detail: "it may have done the task", attempts: 1, uncertain: true, health: dispatch.HealthBad})
			if got := connections.Load(); got != 1 {
				t.Errorf("got %d connections for a non-idempotent task, want 1", got)
			}
			got = execute(t, newTarget(t), newCall(url, idempotent))
			checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "closed the connection", attempts: 2, health: dispatch.HealthBad})
			if got := connections.Load(); got != 3 {
				t.Errorf("got %d connections in total, want 1 and 2", got)
			}
		})
	}
}

func TestTarget_ConnectionResetInBody(t *testing.T) {
	var tries atomic.Int64
	url := rawAgent(t, func(conn net.Conn, _ int) {
		if readRequest(conn) {
			tries.Add(1)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
			resetConn(conn)
		}
	})
	got := execute(t, newTarget(t), newCall(url))
	// A reset may overtake data that was sent before it.
	if got.Err == nil || got.Err.Code != contract.TaskBadResult && got.Err.Code != contract.TaskOutcomeUnknown || !got.MayHaveExecuted || got.Attempts != 1 {
		t.Errorf("got %+v %+v, want an unknown outcome after one attempt", got, got.Err)
	}
	if got := tries.Load(); got != 1 {
		t.Errorf("got %d attempts, want 1", got)
	}
}

// The second attempt can reach an agent that the first one did not reach.
func TestTarget_SecondAttemptSucceeds(t *testing.T) {
	url := rawAgent(t, func(conn net.Conn, n int) {
		if readRequest(conn) && n > 0 {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+successBody)
		}
	})
	checkOutcome(t, execute(t, newTarget(t), newCall(url, idempotent)), want{attempts: 2, health: dispatch.HealthGood})
}

// If a reused connection breaks, net/http resends a request that has an
// Idempotency-Key. A task must arrive once.
func TestTarget_TransportDoesNotResend(t *testing.T) {
	for name, tc := range map[string]struct {
		kind func(*dispatch.Call)
		seen int64
		want want
	}{
		"once": {
			func(*dispatch.Call) {}, 2,
			want{code: contract.TaskOutcomeUnknown, attempts: 1, uncertain: true, health: dispatch.HealthBad},
		},
		"twice": {idempotent, 3, want{attempts: 2, health: dispatch.HealthGood}},
	} {
		for _, how := range []string{"closed", "reset"} {
			t.Run(name+", "+how, func(t *testing.T) {
				var requests atomic.Int64
				url := rawAgent(t, func(conn net.Conn, _ int) {
					// Answers the first request, closes the connection on the
					// second, and answers again on a new connection.
					for {
						if !readRequest(conn) {
							return
						}
						if requests.Add(1) == 2 {
							if how == "reset" {
								resetConn(conn)
							}
							return
						}
						_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n"+successBody)
					}
				})
				target := newTarget(t)
				checkOutcome(t, execute(t, target, newCall(url)), want{attempts: 1, health: dispatch.HealthGood})
				checkOutcome(t, execute(t, target, newCall(url, tc.kind)), tc.want)
				if got := requests.Load(); got != tc.seen {
					t.Errorf("got %d requests at the agent, want %d", got, tc.seen)
				}
			})
		}
	}
}

// If the agent has just closed an idle connection, the request is sent on another one, unless some
// of its bytes may have been sent.
func TestTarget_ReplacesIdleConnection(t *testing.T) {
	closed := make(chan struct{}, 1)
	url := rawAgent(t, func(conn net.Conn, _ int) {
		if readRequest(conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n"+successBody)
			_ = conn.Close()
			closed <- struct{}{}
		}
	})
	target := newTarget(t)
	for i := range 50 {
		got := execute(t, target, newCall(url))
		if got.Err != nil && got.Err.Code != contract.TaskOutcomeUnknown {
			t.Fatalf("request %d: %+v", i, got.Err)
		}
		if got.Err == nil {
			testkit.Receive(t, closed)
		}
	}
}

// Agents that stop sending at different stages.
func TestTarget_TimesOutIfAgentStopsSending(t *testing.T) {
	for name, handle := range map[string]func(conn net.Conn){
		"never reads":             func(net.Conn) {},
		"reads and never answers": func(conn net.Conn) { readRequest(conn) },
		"half a header": func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200")
		},
		"header without a body": func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n")
		},
		"half a body": func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n"+successBody[:10])
		},
		"one byte at a time": func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				if _, err := io.WriteString(conn, "1\r\n \r\n"); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				url := n.rawAgent(t, func(conn net.Conn, _ int) {
					handle(conn)
					readUntilClosed(conn)
				})
				got := execute(t, n.newTarget(t), newCall(url, timeout(1500*time.Millisecond)))
				checkOutcome(t, got, want{
					code: contract.TaskOutcomeUnknown, detail: "did not answer by the deadline", attempts: 1, uncertain: true, health: dispatch.HealthBad,
				})
				got = execute(t, n.newTarget(t), newCall(url, idempotent, timeout(3*time.Second)))
				checkOutcome(t, got, want{code: contract.TaskDeadlineExceeded, detail: "did not answer in time", attempts: 2, health: dispatch.HealthBad})
			})
		})
	}
}

// The earliest of the deadlines of request, task and agent ends the call.
func TestTarget_UsesEarliestDeadline(t *testing.T) {
	const soon = 500 * time.Millisecond
	unknown := want{code: contract.TaskOutcomeUnknown, attempts: 1, uncertain: true}
	unhealthy := unknown
	unhealthy.health = dispatch.HealthBad
	before := func(d time.Duration) func(*dispatch.Call) {
		return func(c *dispatch.Call) { c.Task.Deadline = time.Now().Add(d) }
	}
	for _, tc := range []struct {
		name   string
		ctx    time.Duration
		change func(*dispatch.Call)
		took   time.Duration
		want   want
	}{
		{"deadline of the context", soon, func(*dispatch.Call) {}, soon, unknown},
		{"deadline of the task", time.Minute, before(soon), soon, unknown},
		{"timeout of the agent", time.Minute, timeout(soon), soon, unhealthy},
		{"expired deadline", time.Minute, before(-time.Second), 0, want{code: contract.TaskDeadlineExceeded, detail: "before the task was sent"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				url := n.neverAnswers(t)
				ctx, cancel := context.WithTimeout(t.Context(), tc.ctx)
				defer cancel()
				start := time.Now()
				checkOutcome(t, n.newTarget(t).Execute(ctx, newCall(url, tc.change)), tc.want)
				if took := time.Since(start); took != tc.took {
					t.Errorf("got a call of %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// A caller with a very short timeout must not make an agent count as unhealthy.
func TestTarget_ShortTimeoutDoesNotCountAgainstAgent(t *testing.T) {
	for name, kind := range map[string]func(*dispatch.Call){"once": func(*dispatch.Call) {}, "twice": idempotent} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				url := n.neverAnswers(t)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
				defer cancel()
				if got := n.newTarget(t).Execute(ctx, newCall(url, kind)); got.Health != dispatch.HealthUnknown || got.Attempts == 0 {
					t.Errorf("got health %d after %d attempts in 30 ms, want unknown", got.Health, got.Attempts)
				}
			})
		})
	}
}

func TestTarget_HonoursRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		attempts    int
	}{
		{"none", "", 2},
		{"now", "0", 2},
		{"nonsense", "soon", 2},
		{"negative", "-1", 2},
		{"date in the past", "Mon, 02 Jan 2006 15:04:05 GMT", 2},
		{"longer than the remaining time", "3600", 1},
		{"invalid number", "99999999999", 2}, // not a number of seconds: ignored
		{"date in the far future", "Fri, 31 Dec 9999 23:59:59 GMT", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.value != "" {
					w.Header().Set("Retry-After", tc.value)
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			got := execute(t, newTarget(t), newCall(a.URL, idempotent))
			checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "answered 503", attempts: tc.attempts, health: dispatch.HealthBad})
		})
	}
	t.Run("longer than its share", func(t *testing.T) {
		a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "10") // of 20 s, with two other agents waiting
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		got := execute(t, newTarget(t), newCall(a.URL, idempotent, withStandbys(2)))
		checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, attempts: 1, health: dispatch.HealthBad})
	})
}

// Many concurrent tasks to agents that behave differently.
func TestTarget_ServesConcurrentCalls(t *testing.T) {
	t.Parallel()
	a := newAgent(t, answering(http.StatusOK, successBody))
	urls := []string{
		a.URL, refusingURL,
		rawAgent(t, func(conn net.Conn, _ int) { readRequest(conn) }),
		rawAgent(t, func(conn net.Conn, _ int) { readUntilClosed(conn) }),
		rawAgent(t, func(conn net.Conn, _ int) {
			if readRequest(conn) {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+strings.Repeat(successBody, 99))
			}
		}),
	}
	target := newTarget(t)
	var results atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				c := newCall(urls[(i+j)%len(urls)], timeout(300*time.Millisecond))
				c.Agent.Endpoint.Idempotent = i%2 == 0
				if got := target.Execute(t.Context(), c); got.Result != nil {
					results.Add(1)
				} else if got.Err == nil {
					t.Error("got an outcome without result and error, want one of them")
				}
			}
		})
	}
	wg.Wait()
	if results.Load() == 0 {
		t.Error("got no successful task, want some")
	}
}

// Several agents may share a host, and an agent may permit more tasks than the default.
func TestTarget_ReusesConnectionsOfManyConcurrentCalls(t *testing.T) {
	const calls, rounds = 4 * contract.DefaultMaxInFlight, 3
	arrived := make(chan struct{}, calls)
	release := make(chan struct{}, calls)
	agent := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-release
		_, _ = io.WriteString(w, successBody)
	}))
	var opened atomic.Int64
	agent.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	agent.Start()
	defer agent.Close()
	defer close(release) // of calls that a failure leaves behind
	target := newTarget(t)
	idle := make(chan error, calls) // a call may return before its connection is idle
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(err error) { idle <- err }})
	for range rounds {
		var running sync.WaitGroup
		for range calls {
			running.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				checkOutcome(t, target.Execute(ctx, newCall(agent.URL)), want{attempts: 1, health: dispatch.HealthGood})
			})
		}
		for range calls { // each needs its own connection
			testkit.Receive(t, arrived)
		}
		for range calls {
			release <- struct{}{}
		}
		running.Wait()
		for range calls {
			if err := testkit.Receive(t, idle); err != nil {
				t.Errorf("got a connection that is not kept: %v", err)
			}
		}
	}
	if got := opened.Load(); got != calls {
		t.Errorf("got %d connections for %d rounds of %d calls, want one for each call of a round", got, rounds, calls)
	}
}
