package agentkit_test

import (
	"bytes"
	"context"
	"encoding/json"
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
