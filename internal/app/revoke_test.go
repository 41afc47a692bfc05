package app

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// ownToken returns a token signed by the router itself.
func (s *testServer) ownToken() string {
	s.t.Helper()
	token, err := s.core.issuer.CallerToken(issuance.CallerGrant{
		Issuer: "caprouter", Audience: "caprouter", Subject: "alice", Scopes: strings.Fields(everyScope + " agent:*"),
		Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// readEvents reads the events of a request until the stream ends, and sends the text.
func (s *testServer) readEvents(token, id string) <-chan string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), http.MethodGet, s.url("/api/v1/requests/"+id+"/events"), http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	events := make(chan string, 1)
	go func() {
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		events <- string(body)
	}()
	return events
}

// A stream of events ends when the token of its reader expires, even without an event.
func TestServer_EndsEventStreamWithItsToken(t *testing.T) {
	t.Parallel()
	m, dir := newTokenIssuer(), t.TempDir()
	s := startGuarded(t, m, "clients:\n"+entry("slow", "count_words", "text", refusing), func(c *config.Config) { c.DataDir = dir })
	now := time.Now().Unix()
	short := m.token("alice", everyScope+" agent:*", map[string]any{"iat": now - 60, "exp": now + 3})
	own := s.ownToken()
	expiring := s.readEvents(short, s.submit(short))
	revoked := s.readEvents(own, s.submit(own))
	if got := testkit.Receive(t, expiring); !strings.Contains(got, "event: error") || !strings.Contains(got, `"unauthenticated"`) || strings.Contains(got, "event: final") {
		t.Errorf("after the expiry: got events\n%s\nwant the error unauthenticated at the end", got)
	}
	if _, err := keyring.Rotate(dir, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := testkit.Receive(t, revoked); !strings.Contains(got, "event: error") || !strings.Contains(got, `"unauthenticated"`) {
		t.Errorf("after the revocation: got events\n%s\nwant the error unauthenticated at the end", got)
	}
}

// The requests of a caller whose key is revoked continue, unless the operator configured that they
// stop.
func TestServer_StopsRequestsOfRevokedKeys(t *testing.T) {
	t.Parallel()
	for _, stop := range []bool{false, true} {
		m, dir := newTokenIssuer(), t.TempDir()
		up, calls := countingAgent(t)
		s := startGuarded(t, m, "clients:\n"+entry("slow", "count_words", "text", refusing), func(c *config.Config) {
			c.DataDir, c.Auth.StopOnRevoke = dir, stop
		})
		admin := m.token("root", "admin route:read", nil)
		id := s.submit(s.ownToken())
		other := s.submit(m.token("bob", everyScope+" agent:*", nil))
		testkit.Eventually(t, "the requests are executed", func() bool {
			return s.state(admin, id).Status == contract.StatusRunning && s.state(admin, other).Status == contract.StatusRunning
		})
		if _, err := keyring.Rotate(dir, true, time.Now()); err != nil {
			t.Fatal(err)
		}
		if stop {
			got := s.end(admin, id)
			if got.Status != contract.StatusCancelled || !strings.Contains(encode(got.Tasks), "the key of the caller's token was revoked") {
				t.Errorf("got %s with %s, want cancelled because of the key", got.Status, encode(got.Tasks))
			}
		}
		s.write("clients:\n" + entry("slow", "count_words", "text", up))
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
		if !stop {
			s.end(admin, id)
		}
		if got := s.end(admin, other); got.Status != contract.StatusCompleted {
			t.Errorf("stop_on_revoke %v: got the request of another key %s, want completed", stop, got.Status)
		}
		if want := map[bool]int64{false: 2, true: 1}[stop]; calls.Load() != want {
			t.Errorf("stop_on_revoke %v: got %d tasks at the agent, want %d", stop, calls.Load(), want)
		}
	}
}
