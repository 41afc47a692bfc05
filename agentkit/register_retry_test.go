package agentkit_test

import (
	"bytes"
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

func TestKeepRegistered_WaitsForRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		f.reply = replyTo(callRegister, 0, 0, 0, 0, 0, 0, 0, 503, 503)
		if err := f.keepRegistered(t, &log, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		calls := f.received(callRegister)
		if len(calls) != 10 {
			t.Fatalf("got %d attempts, want 10", len(calls))
		}
		for i := 1; i < len(calls); i++ {
			pause, most := calls[i].At-calls[i-1].At, min(time.Second<<(i-1), 30*time.Second)
			if pause < most/2 || pause > most {
				t.Errorf("pause %d: got %v, want between %v and %v", i, pause, most/2, most)
			}
		}
		for text, want := range map[string]int{"connection refused": 1, "Service Unavailable (503)": 1, "msg=registered ": 1} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("got %d log lines with %q, want %d:\n%s", got, text, want, log.String())
			}
		}
	})
}

func TestKeepRegistered_HonoursRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		call       string
		status     int
		retryAfter string
		want       time.Duration
	}{
		{callRegister, 429, "7", 7 * time.Second},
		{callRegister, 503, "3600", 30 * time.Second},
		{callHeartbeat, 503, "12", 12 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeRegistry()
			f.reply = func(n int, call string, _ *http.Request) (*http.Response, error) {
				if n > 0 || call != tc.call {
					return nil, nil
				}
				resp := problemReply(tc.status, contract.CodeOverloaded, "Overloaded", "")
				resp.Header.Set("Retry-After", tc.retryAfter)
				return resp, nil
			}
			if err := f.keepRegistered(t, nil, time.Minute); err != nil {
				t.Fatal(err)
			}
			if calls := f.received(tc.call); len(calls) < 2 || calls[1].At-calls[0].At != tc.want {
				t.Errorf("%s, Retry-After %s: got calls %+v, want %v between the first two", tc.call, tc.retryAfter, calls, tc.want)
			}
		})
	}
}

func TestKeepRegistered_GivesUpIfRejected(t *testing.T) {
	detail := contract.ErrorDetail{Pointer: "/match/intent/0", Detail: "is not a name"}
	for _, tc := range []struct {
		name   string
		reply  *http.Response
		change func(*agentkit.Config)
		puts   int
		want   []string
		code   contract.Code
	}{
		{
			"invalid token", problemReply(401, contract.CodeUnauthenticated, "Authentication is required", "the token has expired"), nil, 1,
			[]string{"http://router.example/api/v1/agents/word_counter", "Authentication is required (401)", "the token has expired"},
			contract.CodeUnauthenticated,
		},
		{
			"no grant", problemReply(403, contract.CodeForbidden, "The caller is not authorized", "no grant for word_counter"), nil, 1,
			[]string{"The caller is not authorized (403): no grant for word_counter"},
			contract.CodeForbidden,
		},
		{
			"invalid declaration", problemReply(422, contract.CodeInvalidRequest, "The request is not valid", "2 errors", detail, contract.ErrorDetail{Detail: "no domain"}), nil, 1,
			[]string{"The request is not valid (422): 2 errors; /match/intent/0: is not a name; no domain"},
			contract.CodeInvalidRequest,
		},
		{"older router", answer(404, "<html>"), nil, 1, []string{"Not Found (404)"}, ""},
		{"redirect", answer(308, ""), nil, 1, []string{"Permanent Redirect (308)"}, ""},
		{"no token", nil, func(c *agentkit.Config) { c.Token = agentkit.TokenFile("/nonexistent/token") }, 0, []string{"/nonexistent/token"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeRegistry()
				f.reply = func(int, string, *http.Request) (*http.Response, error) { return tc.reply, nil }
				var change []func(*agentkit.Config)
				if tc.change != nil {
					change = append(change, tc.change)
				}
				err := f.keepRegistered(t, nil, time.Hour, change...)
				for _, want := range tc.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("KeepRegistered: got %v, want an error with %q", err, want)
					}
				}
				if e, ok := errors.AsType[*contract.Error](err); tc.code != "" && (!ok || e.Code != tc.code) {
					t.Errorf("KeepRegistered: got %v, want a *contract.Error with the code %s", err, tc.code)
				}
				if took := time.Since(f.began); took != 0 {
					t.Errorf("got an end after %v, want at once", took)
				}
				want := append(make([]string, 0, 2), []string{callRegister}[:tc.puts]...)
				if diff := cmp.Diff(append(want, callShutdown), f.sequence()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// An agent that is declared in the operator's file retries. When the operator removes it there, the
// agent registers itself.
func TestKeepRegistered_RetriesWhileDeclaredInFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		f.reply = replyTo(callRegister, 409, 409, 409, 409, 409, 409, 409, 409)
		if err := f.keepRegistered(t, &log, time.Hour); err != nil {
			t.Fatal(err)
		}
		if n := len(f.received(callRegister)); n != 9 {
			t.Errorf("got %d attempts, want 9", n)
		}
		if got := strings.Count(log.String(), "(409)"); got != 1 {
			t.Errorf("got %d log lines about the conflict, want one:\n%s", got, log.String())
		}
	})
}

// After the first registration no rejection ends the agent: it may have tasks in progress, and an
// operator may correct the cause.
func TestKeepRegistered_RetriesLaterRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRegistry()
		f.reply = func(n int, call string, _ *http.Request) (*http.Response, error) {
			switch {
			case call == callHeartbeat && n == 0:
				return answer(http.StatusNotFound, ""), nil
			case call == callRegister && n >= 1 && n <= 3:
				return answer([]int{0, 401, 403, 422}[n], ""), nil
			}
			return nil, nil
		}
		if err := f.keepRegistered(t, nil, time.Minute); err != nil {
			t.Fatalf("KeepRegistered = %v", err)
		}
		if puts, heartbeats := len(f.received(callRegister)), len(f.received(callHeartbeat)); puts != 5 || heartbeats < 3 {
			t.Errorf("got %d registrations and %d heartbeats, want 5, then heartbeats", puts, heartbeats)
		}
	})
}

// A lost heartbeat is repeated before the next interval, so that the lease does not expire.
func TestKeepRegistered_RepeatsLostHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		f.reply = replyTo(callHeartbeat, 0, 0, 0, 200)
		if err := f.keepRegistered(t, &log, 20*time.Second); err != nil {
			t.Fatal(err)
		}
		calls := f.received(callHeartbeat)
		if len(calls) != 4 || calls[3].At-calls[0].At > 7*time.Second {
			t.Errorf("got heartbeats %+v, want the fourth at most 7 s after the first", calls)
		}
		for text, want := range map[string]int{"connection refused": 1, "heartbeat accepted again": 1} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("got %d log lines with %q, want %d:\n%s", got, text, want, log.String())
			}
		}
	})
}

func TestKeepRegistered_RetriesRepliesWithoutLease(t *testing.T) {
	for _, body := range []string{"", "<html>", "{}", `{"State":"active"}`} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			f := newFakeRegistry()
			f.reply = func(n int, call string, _ *http.Request) (*http.Response, error) {
				if call == callRegister && n == 0 {
					return answer(http.StatusOK, body), nil
				}
				return nil, nil
			}
			if err := f.keepRegistered(t, &log, 5*time.Second); err != nil {
				t.Fatal(err)
			}
			if n := len(f.received(callRegister)); n != 2 || !strings.Contains(log.String(), "not a lease") {
				t.Errorf("body %q: got %d registrations and log\n%s\nwant 2 and the reason", body, n, log.String())
			}
		})
	}
}
