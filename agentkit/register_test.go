package agentkit_test

import (
	"bytes"
	"context"
	"encoding/json"
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

func TestKeepRegistered_SendsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		if err := f.keepRegistered(t, &log, 35*time.Second, func(c *agentkit.Config) { c.Token = token("secret") }); err != nil {
			t.Fatalf("KeepRegistered = %v", err)
		}
		want := []string{callRegister, callHeartbeat, callDrain, callShutdown, callDeregister}
		if diff := cmp.Diff(want, f.sequence()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		var before time.Duration
		heartbeats := f.received(callHeartbeat)
		for i, c := range heartbeats {
			if pause := c.At - before; pause < 9*time.Second || pause > 10*time.Second {
				t.Errorf("heartbeat %d: got a pause of %v, want 9 s to 10 s", i, pause)
			}
			before = c.At
		}
		if len(heartbeats) != 3 {
			t.Errorf("got %d heartbeats in 35 s, want 3", len(heartbeats))
		}
		for _, c := range f.received("") {
			if c.Call != callShutdown && c.Token != "secret" {
				t.Errorf("%s: got token %q, want secret", c.Call, c.Token)
			}
			isInstance := c.Call == callHeartbeat || c.Call == callDrain
			if isInstance && c.Body != `{"instance":"i1"}` || c.Call == callDeregister && c.Body != "" {
				t.Errorf("%s: got body %s, want the instance", c.Call, c.Body)
			}
		}
		if got := log.String(); strings.Count(got, "msg=registered ") != 1 || strings.Contains(got, "level=WARN") || strings.Contains(got, "secret") {
			t.Errorf("got log\n%s\nwant one line about the registration, no warning and no token", got)
		}
	})
}

func token(text string) agentkit.TokenSource {
	return func(context.Context) (string, error) { return text, nil }
}

func TestKeepRegistered_SendsDeclaration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRegistry()
		declared := contract.Registration{
			Instance: "i1", LeaseTTLS: 60, Description: "Counts words", Keywords: []string{"words"},
			Match:       contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
			Examples:    map[string][]string{"count_words": {"how many words"}},
			Endpoint:    contract.Endpoint{URL: "https://agent.example/tasks", Idempotent: true},
			MaxInFlight: 4,
		}
		if err := f.keepRegistered(t, nil, time.Second, func(c *agentkit.Config) { c.Registration = declared }); err != nil {
			t.Fatal(err)
		}
		var got contract.Registration
		if err := json.Unmarshal([]byte(f.received(callRegister)[0].Body), &got); err != nil {
			t.Fatal(err)
		}
		declared.Endpoint.Protocol = contract.ProtocolHTTP // the default
		if diff := cmp.Diff(declared, got); diff != "" {
			t.Errorf("registration (-want +got):\n%s", diff)
		}
	})
}

// The router rejects null where it expects a list.
func TestKeepRegistered_SendsListsWithoutIntentsAndDomains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRegistry()
		if err := f.keepRegistered(t, nil, time.Second, func(c *agentkit.Config) { c.Registration.Match = contract.Match{} }); err != nil {
			t.Fatal(err)
		}
		if body, want := f.received(callRegister)[0].Body, `"match":{"intent":[],"domains":[]}`; !strings.Contains(body, want) {
			t.Errorf("got registration %s, want %s in it", body, want)
		}
	})
}

// Two agents on one host must have different instance names.
func TestKeepRegistered_NamesInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := map[string]bool{}
		for range 2 {
			f := newFakeRegistry()
			f.reply = func(_ int, call string, _ *http.Request) (*http.Response, error) {
				if strings.HasPrefix(call, http.MethodDelete) {
					return answer(http.StatusNoContent, ""), nil
				}
				return nil, nil
			}
			if err := f.keepRegistered(t, nil, time.Second, func(c *agentkit.Config) { c.Registration.Instance = "" }); err != nil {
				t.Fatal(err)
			}
			var got contract.Registration
			if err := json.Unmarshal([]byte(f.received(callRegister)[0].Body), &got); err != nil {
				t.Fatal(err)
			}
			if !contract.ValidAgentID(got.Instance) || names[got.Instance] {
				t.Errorf("got instance %q after %v, want another valid name", got.Instance, names)
			}
			names[got.Instance] = true
			if calls := f.received("DELETE /api/v1/agents/word_counter?instance=" + got.Instance); len(calls) != 1 {
				t.Errorf("instance %s: got %d deregistrations, want one", got.Instance, len(calls))
			}
		}
	})
}

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

// A router that was restarted without its data does not know the agent.
func TestKeepRegistered_RegistersAgainIfUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		f.reply = replyTo(callHeartbeat, 200, 404, 200)
		if err := f.keepRegistered(t, &log, 35*time.Second); err != nil {
			t.Fatal(err)
		}
		want := []string{callRegister, callHeartbeat, callRegister, callHeartbeat, callDrain, callShutdown, callDeregister}
		if diff := cmp.Diff(want, f.sequence()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if puts, heartbeats := f.received(callRegister), f.received(callHeartbeat); len(heartbeats) != 3 || puts[1].At != heartbeats[1].At || puts[1].Body != puts[0].Body {
			t.Errorf("got registrations %+v and heartbeats %+v, want the same registration right after the second heartbeat", puts, heartbeats)
		}
		if got := strings.Count(log.String(), "does not know the registration"); got != 1 {
			t.Errorf("got %d log lines about the unknown instance, want one:\n%s", got, log.String())
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

// While the operator's file declares the agent, its registration is suspended.
func TestKeepRegistered_ContinuesWhileSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		f.reply = replyTo(callHeartbeat, 409, 409, 409, 200)
		if err := f.keepRegistered(t, &log, 62*time.Second); err != nil {
			t.Fatal(err)
		}
		heartbeats := f.received(callHeartbeat)
		for i := 1; i < len(heartbeats); i++ {
			if pause := heartbeats[i].At - heartbeats[i-1].At; pause < 9*time.Second || pause > 10*time.Second {
				t.Errorf("heartbeat %d: got a pause of %v, want 9 s to 10 s", i, pause)
			}
		}
		if n := len(f.received(callRegister)); n != 1 || len(heartbeats) != 6 {
			t.Errorf("got %d registrations and %d heartbeats, want 1 and 6", n, len(heartbeats))
		}
		for text, want := range map[string]int{"(409)": 1, "heartbeat accepted again": 1} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("got %d log lines with %q, want %d:\n%s", got, text, want, log.String())
			}
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

// A heartbeat without a reply ends early enough for another one during the lease.
func TestKeepRegistered_BoundsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRegistry()
		f.reply = func(n int, call string, r *http.Request) (*http.Response, error) {
			switch {
			case call == callRegister:
				return answer(http.StatusCreated, `{"state":"active","heartbeat_s":3}`), nil
			case call == callHeartbeat && n == 0:
				return noReply(r)
			}
			return nil, nil
		}
		if err := f.keepRegistered(t, nil, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if calls := f.received(callHeartbeat); len(calls) < 2 || calls[1].At > 7*time.Second {
			t.Errorf("got heartbeats %+v, want two within 7 s", calls)
		}
	})
}

func TestKeepRegistered_LimitsInterval(t *testing.T) {
	for lease, want := range map[string]int{ // heartbeats in 21 s
		`{"state":"active"}`:                         2,
		`{"state":"active","heartbeat_s":-1}`:        2,
		`{"state":"active","heartbeat_s":1e300}`:     0,
		`{"state":"active","heartbeat_s":0.0000001}`: 210,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeRegistry()
			f.reply = func(_ int, call string, _ *http.Request) (*http.Response, error) {
				if call == callRegister || call == callHeartbeat {
					return answer(http.StatusOK, lease), nil
				}
				return nil, nil
			}
			if err := f.keepRegistered(t, nil, 21*time.Second); err != nil {
				t.Fatal(err)
			}
			if got := len(f.received(callHeartbeat)); got < want || got > want*10/9+1 {
				t.Errorf("lease %s: got %d heartbeats in 21 s, want %d", lease, got, want)
			}
		})
	}
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

// The log lists the declarations that are not granted, once.
func TestKeepRegistered_LogsRejectedDeclarations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		f.reply = func(n int, call string, _ *http.Request) (*http.Response, error) {
			switch {
			case call == callRegister:
				return answer(http.StatusCreated, `{"state":"active","heartbeat_s":10,"refused":["intent code_review is not granted"]}`), nil
			case call == callHeartbeat && n < 2:
				return answer(http.StatusOK, `{"state":"disabled","heartbeat_s":10,"refused":["intent code_review is not granted"]}`), nil
			}
			return nil, nil // active, nothing rejected
		}
		if err := f.keepRegistered(t, &log, 45*time.Second); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]int{"code_review": 1, "state=disabled": 1, "state=active": 2, "state=draining": 1} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("got %d log lines with %q, want %d:\n%s", got, text, want, log.String())
			}
		}
	})
}

func TestKeepRegistered_RequiresAddresses(t *testing.T) {
	f := newFakeRegistry()
	for name, change := range map[string]func(*agentkit.Config){
		"RouterURL":    func(c *agentkit.Config) { c.JWKSURL, c.RouterURL = "http://router.example/jwks.json", "" },
		"Endpoint.URL": func(c *agentkit.Config) { c.Registration.Endpoint.URL = "" },
	} {
		if err := f.keepRegistered(t, nil, time.Minute, change); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: got %v, want an error that names it", name, err)
		}
	}
}
