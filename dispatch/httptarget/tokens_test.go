package httptarget_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/testkit"
)

// countingSource records the grants it is called with.
type countingSource struct {
	source httptarget.TokenSource
	mu     sync.Mutex
	grants []issuance.AgentGrant

	taskGrants []contract.TaskGrant
	changed    string // the name of the new key after a key change
}

func (s *countingSource) KeyID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != "" {
		return s.changed
	}
	return s.source.KeyID()
}

func (s *countingSource) AgentToken(g issuance.AgentGrant) (string, error) {
	s.mu.Lock()
	s.grants = append(s.grants, g)
	s.mu.Unlock()
	return s.source.AgentToken(g)
}

func (s *countingSource) TaskToken(issuer string, g contract.TaskGrant) (string, error) {
	s.mu.Lock()
	s.taskGrants = append(s.taskGrants, g)
	s.mu.Unlock()
	return s.source.TaskToken(issuer, g)
}

func (s *countingSource) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.grants)
}

// failingSource issues no tokens.
type failingSource struct{}

func (failingSource) KeyID() string { return "" }

func (failingSource) AgentToken(issuance.AgentGrant) (string, error) {
	return "", errors.New("the key is gone: hunter2")
}

func (failingSource) TaskToken(string, contract.TaskGrant) (string, error) {
	return "", errors.New("the key is gone: hunter2")
}

func TestTarget_SendsTokenMintedInAdvance(t *testing.T) {
	deadline := time.Now().Add(9 * time.Second)
	tests := []struct {
		name   string
		change func(*dispatch.Token)
		want   int // tokens that are minted
	}{
		{"valid", func(*dispatch.Token) {}, 1},
		{"expires too soon", func(token *dispatch.Token) { token.Expires = deadline }, 2},
		{"of another key", func(token *dispatch.Token) { token.KeyID = "older" }, 2},
		{"none", func(token *dispatch.Token) { *token = dispatch.Token{} }, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := &countingSource{source: newSigner(t)}
			target := newTargetWith(t, source)
			got := make(chan string, 1)
			a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
				got <- r.Header.Get("Authorization")
				answering(http.StatusOK, successBody)(w, r)
			})
			call := newCall(a.URL, func(c *dispatch.Call) { c.Task.Deadline = deadline })
			token := target.Prepare(t.Context(), call)
			if want := deadline.Add(dispatch.TokenSlack); token.Value == "" || !token.Expires.Equal(want) {
				t.Fatalf("got token %+v, want one until %s", token, want)
			}
			minted := token.Value
			tt.change(&token)
			call.Token = token
			execute(t, target, call)
			first := testkit.Receive(t, got) == "Bearer "+minted
			if count := source.count(); count != tt.want || first != (tt.want == 1) {
				t.Errorf("got %d tokens, the agent got the first one: %v, want %d tokens", count, first, tt.want)
			}
		})
	}
}

// A token that is reused is not minted for a single task.
func TestTarget_MintsNoReusedTokenInAdvance(t *testing.T) {
	source := &countingSource{source: newSigner(t)}
	target := newTargetWith(t, source, func(c *httptarget.Config) { c.TokenReuse = time.Minute })
	if token := target.Prepare(t.Context(), newCall("http://127.0.0.1:1")); token != (dispatch.Token{}) || source.count() != 0 {
		t.Errorf("got token %+v, %d minted, want none", token, source.count())
	}
}

func TestTokenCache_MintsTokenForEachTask(t *testing.T) {
	source := &countingSource{source: newSigner(t)}
	target := newTargetWith(t, source)
	a := newAgent(t, answering(http.StatusOK, successBody))
	deadline := time.Now().Add(9 * time.Second)
	for i := range 3 {
		execute(t, target, newCall(a.URL, func(c *dispatch.Call) { c.Task.TaskID, c.Task.Deadline = fmt.Sprint("t", i), deadline }))
	}
	var expected []issuance.AgentGrant
	for i := range 3 {
		expected = append(expected, issuance.AgentGrant{
			Issuer: "caprouter", AgentID: "quality_agent", Subject: "alice", TaskID: fmt.Sprint("t", i), Expires: deadline.Add(30 * time.Second),
		})
	}
	if diff := cmp.Diff(expected, source.grants); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
}

// A second attempt is for the same task and has the same token.
func TestTokenCache_AttemptsShareToken(t *testing.T) {
	source := &countingSource{source: newSigner(t)}
	seen := map[string]bool{}
	a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
		seen[r.Header.Get("Authorization")] = true
		w.WriteHeader(http.StatusBadGateway)
	})
	execute(t, newTargetWith(t, source), newCall(a.URL, idempotent))
	if len(seen) != 1 || source.count() != 1 {
		t.Errorf("got %d tokens sent and %d issued, want 1", len(seen), source.count())
	}
}

func TestTokenCache_ReusesTokens(t *testing.T) {
	now := time.Now()
	source := &countingSource{source: newSigner(t)}
	target := newTargetWith(t, source, func(c *httptarget.Config) {
		c.TokenReuse, c.Now = time.Minute, func() time.Time { return now }
	})
	var token string
	a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, successBody)
	})
	send := func(agent, caller string) string {
		t.Helper()
		checkOutcome(t, execute(t, target, newCall(a.URL, func(c *dispatch.Call) { c.Agent.ID, c.Caller.Subject = agent, caller })),
			want{attempts: 1, health: dispatch.HealthGood})
		return token
	}
	first := send("a", "alice")
	g := source.grants[0]
	if g.TaskID != "" || !g.Expires.Equal(now.Add(90*time.Second)) {
		t.Errorf("got grant %+v, want one without a task that expires in 90 s", g)
	}
	if send("a", "alice") != first {
		t.Error("got another token for the second task of a caller, want the same")
	}
	if send("a", "bob") == first || send("b", "alice") == first {
		t.Error("got the same token for another caller or agent, want separate ones")
	}
	if got := source.count(); got != 3 {
		t.Errorf("got %d tokens issued, want 3", got)
	}
	now = now.Add(time.Minute - 1)
	if send("a", "alice") != first {
		t.Error("got a token renewed too early")
	}
	now = now.Add(1)
	second := send("a", "alice")
	if second == first {
		t.Error("got an expired token, want a renewed one")
	}
	source.mu.Lock()
	source.changed = "another"
	source.mu.Unlock()
	if send("a", "alice") == second {
		t.Error("got a cached token of a retired key, want a new one")
	}
}

// Issuer and tenant are part of a caller's identity: the agent receives both, and
// callers with the same subject do not share tokens.
func TestTokenCache_SeparatesIssuersAndTenants(t *testing.T) {
	callers := []contract.Caller{
		{Subject: "alice"},
		{Subject: "alice", Issuer: "https://a.example"},
		{Subject: "alice", Issuer: "https://b.example"},
		{Subject: "alice", Issuer: "https://a.example", Tenant: "acme"},
		{Subject: "alice", Issuer: "https://a.example", Tenant: "globex"},
		{Subject: "alice", Tenant: "acme"},
	}
	for _, reuse := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint("reuse ", reuse), func(t *testing.T) {
			source := &countingSource{source: newSigner(t)}
			target := newTargetWith(t, source, func(c *httptarget.Config) { c.TokenReuse = reuse })
			a := newAgent(t, answering(http.StatusOK, successBody))
			var expected []contract.Caller
			for range 2 {
				for _, caller := range callers {
					execute(t, target, newCall(a.URL, func(c *dispatch.Call) { c.Caller = &caller }))
				}
				if expected == nil || reuse == 0 {
					expected = append(expected, callers...)
				}
			}
			var got []contract.Caller
			for _, g := range source.grants {
				got = append(got, contract.Caller{Subject: g.Subject, Issuer: g.SubjectIssuer, Tenant: g.Tenant})
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("grants of the issued tokens (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTokenCache_IsBounded(t *testing.T) {
	source := &countingSource{source: cheapSource{}}
	target := newTargetWith(t, source, func(c *httptarget.Config) { c.TokenReuse = time.Hour })
	a := newAgent(t, answering(http.StatusOK, successBody))
	as := func(subject string) dispatch.Call {
		return newCall(a.URL, func(c *dispatch.Call) { c.Caller.Subject = subject })
	}
	// a caller that is used all the time stays cached
	for i := range 10_000 {
		httptarget.MintToken(target, as(fmt.Sprint("caller", i)))
		httptarget.MintToken(target, as("regular"))
	}
	if got := httptarget.CachedTokens(target); got > 4096 {
		t.Errorf("got %d cached tokens, want at most 4096", got)
	}
	if got := source.count(); got != 10_001 {
		t.Errorf("got %d tokens issued, want one for each caller", got)
	}
}

type cheapSource struct{}

func (cheapSource) KeyID() string { return "cheap" }

func (cheapSource) AgentToken(g issuance.AgentGrant) (string, error) { return g.Subject, nil }

func (cheapSource) TaskToken(_ string, g contract.TaskGrant) (string, error) { return g.TaskID, nil }

func TestTarget_FailsWithoutToken(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	got := execute(t, newTargetWith(t, failingSource{}), newCall(a.URL))
	checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "no token could be made for quality_agent"})
	if strings.Contains(got.Err.Detail, "hunter2") {
		t.Errorf("got detail %q, want none of the text that is only for the log", got.Err.Detail)
	}
	got = execute(t, newTarget(t), newCall(a.URL, func(c *dispatch.Call) { c.Caller = nil }))
	checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "no token"})
	if len(a.received()) != 0 {
		t.Error("got a task sent without a token, want none")
	}
}
