package app

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// taskRequest is a request that an agent received.
type taskRequest struct {
	token string
	body  []byte
}

// headerOf returns algorithm and kid of a token.
func headerOf(t *testing.T, token string) (alg, kid string) {
	t.Helper()
	var header struct{ Alg, Kid string }
	text, _, _ := strings.Cut(token, ".")
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &header) != nil {
		t.Fatalf("header of %s: %v", token, err)
	}
	return header.Alg, header.Kid
}

// startRecordingAgent starts an agent that sends the received requests to the channel.
func startRecordingAgent(t *testing.T) (a *testAgent, received chan taskRequest) {
	a, received = startAgent(t, "counter", answer("ok")), make(chan taskRequest, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		received <- taskRequest{strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), body}
		a.handler().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a, received
}

// deliver sends a request to the agent and returns the status.
func (a *testAgent) deliver(task taskRequest) int {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(task.body))
	r.Header.Set("Authorization", "Bearer "+task.token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, r)
	return w.Code
}

// The router signs tokens for agents with the configured algorithm. When the algorithm changes, in
// either direction, the tokens of open tasks stay valid, and agents with cached keys accept the new
// ones.
func TestServer_SignsAgentTokensWithConfiguredAlgorithm(t *testing.T) {
	agent, received := startRecordingAgent(t)
	dir := filepath.Join(t.TempDir(), "data")
	var earlier []taskRequest
	for _, alg := range []string{"EdDSA", "ES256", "EdDSA"} {
		t.Run(alg, func(t *testing.T) {
			s := startServer(t, "clients:\n"+entry("counter", "count_words", "text", agent.url), func(c *config.Config) {
				c.DataDir, c.Auth.AgentTokens.Alg = dir, alg
			})
			if earlier == nil {
				agent.trust(s) // with the keys of the first process; the next ones have other addresses
			}
			resp := s.route(`{"content":{"prompt":"count the words of this text"}}`)
			if resp.Status != contract.StatusCompleted {
				t.Errorf("got status %s: %s", resp.Status, encode(resp))
			}
			task := testkit.Receive(t, received)
			if got, kid := headerOf(t, task.token); got != alg || !strings.Contains(s.get("/.well-known/jwks.json"), kid) {
				t.Errorf("got a token with alg %s and kid %s, want %s and a published key", got, kid, alg)
			}
			for i, old := range earlier {
				if got := agent.deliver(old); got != http.StatusOK {
					t.Errorf("token of process %d: got %d after the change to %s, want 200", i, got, alg)
				}
			}
			earlier = append(earlier, task)
		})
	}
}

// With ES256, a rotation replaces the key of tokens for agents, and a revocation removes the old
// one at once.
func TestServer_RotatesES256Key(t *testing.T) {
	t.Parallel()
	agent, received := startRecordingAgent(t)
	dir := filepath.Join(t.TempDir(), "data")
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "text", agent.url), func(c *config.Config) {
		c.DataDir, c.Auth.AgentTokens.Alg = dir, "ES256"
	})
	route := func() (kid string) {
		t.Helper()
		agent.trust(s) // fetch the keys now instead of after a minute
		resp := s.route(`{"content":{"prompt":"count the words of this text"}}`)
		alg, kid := headerOf(t, testkit.Receive(t, received).token)
		if alg != "ES256" || resp.Status != contract.StatusCompleted {
			t.Errorf("got a token with alg %s and status %s, want ES256 and completed", alg, resp.Status)
		}
		return kid
	}
	first := route()
	done, err := keyring.Rotate(dir, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	published := func(kid string) bool { return strings.Contains(s.get("/.well-known/jwks.json"), kid) }
	testkit.Eventually(t, "the new key is published", func() bool { return published(done.New.ES256ID) })
	if got := route(); got != first || !published(first) {
		t.Errorf("got kid %s, want %s until the agents know the new key", got, first)
	}
	if done, err = keyring.Rotate(dir, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the first key is withdrawn", func() bool { return !published(first) })
	if got := route(); got != done.New.ES256ID {
		t.Errorf("got kid %s after the revocation, want %s", got, done.New.ES256ID)
	}
}
