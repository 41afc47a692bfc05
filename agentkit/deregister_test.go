package agentkit_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

// The lease is renewed until the tasks are done, because the router may reassign the tasks of an
// expired instance. An unknown instance must not register again.
func TestKeepRegistered_RenewsLeaseWhileDraining(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeRegistry()
			f.reply = replyTo(callHeartbeat, 200, status)
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			err := f.agent(t, nil, countWords).KeepRegistered(ctx, func(context.Context) error {
				<-time.After(25 * time.Second)
				f.record(registryCall{Call: callShutdown})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{callRegister, callHeartbeat, callDrain, callHeartbeat, callShutdown, callDeregister}
			heartbeats := 3
			if status == http.StatusNotFound { // the router has no registration to remove
				want, heartbeats = want[:5], 2
			}
			if diff := cmp.Diff(want, f.sequence()); diff != "" {
				t.Errorf("status %d: calls (-want +got):\n%s", status, diff)
			}
			if got := len(f.received(callHeartbeat)); got != heartbeats {
				t.Errorf("status %d: got %d heartbeats, want %d", status, got, heartbeats)
			}
		})
	}
}

// A router that is down or does not respond does not prevent the agent from stopping.
func TestKeepRegistered_StopsWithoutRouter(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reply func(r *http.Request) (*http.Response, error)
		limit time.Duration
	}{
		{"down", func(*http.Request) (*http.Response, error) { return nil, errNoConnection }, 0},
		{"no response", noReply, 7 * time.Second},
		{"overloaded", func(*http.Request) (*http.Response, error) { return answer(503, ""), nil }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				f := newFakeRegistry()
				f.reply = func(_ int, call string, r *http.Request) (*http.Response, error) {
					if call == callRegister {
						return nil, nil
					}
					return tc.reply(r)
				}
				if err := f.keepRegistered(t, &log, time.Minute); err != nil {
					t.Errorf("KeepRegistered: got %v, want nil because the tasks are done", err)
				}
				if took := time.Since(f.began) - time.Minute; took > tc.limit {
					t.Errorf("got a stop after %v, want at most %v", took, tc.limit)
				}
				want := []string{callRegister, callHeartbeat, callDrain, callShutdown, callDeregister}
				if diff := cmp.Diff(want, f.sequence()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				for _, text := range []string{"the router does not know that the agent stops", "not deregistered"} {
					if strings.Count(log.String(), text) != 1 {
						t.Errorf("got log\n%s\nwant one line with %q", log.String(), text)
					}
				}
			})
		})
	}
}

// An agent that stops before the router has answered may still be registered, so it deregisters.
func TestKeepRegistered_StopsWhileRegistering(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reply func(r *http.Request) (*http.Response, error)
		want  []string
	}{
		{"router does not respond", noReply, []string{callRegister, callDrain, callShutdown, callDeregister}},
		{"router is down", func(*http.Request) (*http.Response, error) { return nil, errNoConnection }, []string{callRegister, callShutdown}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeRegistry()
				f.reply = func(_ int, call string, r *http.Request) (*http.Response, error) {
					if call == callRegister {
						return tc.reply(r)
					}
					return nil, nil
				}
				if err := f.keepRegistered(t, nil, 5*time.Second); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, f.sequence()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if took := time.Since(f.began); took != 5*time.Second {
					t.Errorf("got a stop after %v, want 5 s", took)
				}
			})
		})
	}
}

// An expired registration is not deregistered.
func TestKeepRegistered_StopsAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		f.reply = replyTo(callDeregister, 404)
		if err := f.keepRegistered(t, &log, time.Second); err != nil || strings.Contains(log.String(), "WARN") {
			t.Errorf("KeepRegistered: got %v and log\n%s\nwant no warning", err, log.String())
		}
	})
}

// Tasks that are not done after DrainTimeout are cancelled, both with an open connection and with a
// callback.
func TestKeepRegistered_CancelsTasksAfterDrainTimeout(t *testing.T) {
	for name, callback := range map[string]any{"connection": nil, "callback": object{"url": resultURL, "token": "task-token"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, d := newFakeRegistry(), newFakeCallbackServer()
				f.reply = func(_ int, call string, r *http.Request) (*http.Response, error) {
					if strings.HasPrefix(call, http.MethodGet) || strings.HasSuffix(call, "/result") {
						return d.RoundTrip(r)
					}
					return nil, nil
				}
				var cancelled time.Duration
				a := f.agent(t, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
					agentkit.AcceptAsync(ctx)
					<-ctx.Done()
					cancelled = time.Since(f.began)
					return contract.Result{}, ctx.Err()
				}, func(c *agentkit.Config) { c.DrainTimeout = 8 * time.Second })
				served := make(chan struct{})
				go func() {
					defer close(served)
					serve(a, d.post(validTask().with("callback", callback)))
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				err := a.KeepRegistered(ctx, func(ctx context.Context) error { // like http.Server.Shutdown
					select {
					case <-served:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				<-served
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("KeepRegistered: got %v, want the drain timeout", err)
				}
				if cancelled != 13*time.Second {
					t.Errorf("got the task cancelled after %v, want 8 s after the end of the context", cancelled)
				}
				calls := f.received("")
				if last := calls[len(calls)-1]; last.Call != callDeregister || last.At > 15*time.Second {
					t.Errorf("got last call %+v, want %s within 2 s", last, callDeregister)
				}
			})
		})
	}
}

// If the server cannot shut down, its tasks are cancelled.
func TestKeepRegistered_CancelsTasksIfShutdownFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, d := newFakeRegistry(), newFakeCallbackServer()
		f.reply = func(_ int, call string, r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(call, http.MethodGet) {
				return d.RoundTrip(r)
			}
			return nil, nil
		}
		a := f.agent(t, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
			<-ctx.Done()
			return contract.Result{}, ctx.Err()
		})
		served := make(chan struct{})
		go func() {
			defer close(served)
			serve(a, d.post(validTask()))
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		broken := errors.New("broken")
		if err := a.KeepRegistered(ctx, func(context.Context) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("KeepRegistered: got %v, want the error of shutdown", err)
		}
		<-served
		if took := time.Since(f.began); took != 5*time.Second {
			t.Errorf("got the task ended after %v, want at the shutdown after 5 s", took)
		}
	})
}
