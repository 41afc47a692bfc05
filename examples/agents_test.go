package examples_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// The grant in each README.md must be valid and permit the declaration of the agent.
func TestAgents_HaveGrant(t *testing.T) {
	files, err := filepath.Glob("agents/*/README.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no README.md found (%v)", err)
	}
	block := regexp.MustCompile("(?s)\n   ```yaml\n(.*?)\n   ```\n")
	for _, file := range files {
		m := block.FindStringSubmatch(readFile(t, file))
		if m == nil {
			t.Errorf("%s: got no registry", file)
			continue
		}
		s, err := capabilities.Parse(file, []byte(strings.ReplaceAll("\n"+m[1], "\n   ", "\n")))
		if err != nil {
			t.Error(err)
			continue
		}
		want := contract.Grant{Intents: []string{"count_words"}, Domains: []string{"text"}}
		if diff := cmp.Diff(want, s.Fleet.Grants["word_counter"]); diff != "" {
			t.Errorf("%s: grant (-want +got):\n%s", file, diff)
		}
	}
}

// lookProgram returns the path of the program, or skips the test.
func lookProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	return path
}

func TestAgentCurl_KeepsRegistered(t *testing.T) {
	lookProgram(t, "curl")
	r := newAgentRouter(t)
	r.reply["PUT "] = []int{http.StatusServiceUnavailable}
	r.reply["POST /heartbeat"] = []int{http.StatusNotFound}
	stop := r.startAgent(t, []string{"AGENT_URL=http://127.0.0.1:9101/"}, lookProgram(t, "sh"), "agents/curl/register.sh")
	declared := testkit.Receive(t, r.declared)
	want := contract.Registration{
		Instance: declared.Instance, Match: contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
		Examples: map[string][]string{"count_words": {"how many words are in this text"}},
		Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: "http://127.0.0.1:9101/"},
	}
	if diff := cmp.Diff(want, declared); diff != "" || !contract.ValidAgentID(declared.Instance) {
		t.Errorf("registration (-want +got):\n%s", diff)
	}
	r.checkCalls(t, "PUT ", "POST /heartbeat", "PUT ", "POST /heartbeat")
	if err := stop(); err != nil {
		t.Errorf("register.sh: %v", err)
	}
	for call := range receiveUntil(t, r.calls, "POST /drain") {
		if call != "POST /heartbeat" {
			t.Errorf("got call %q before the drain", call)
		}
	}
	r.checkCalls(t, "DELETE ")
}

// receiveUntil returns the values before the last one.
func receiveUntil(t *testing.T, ch <-chan string, last string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			if v := testkit.Receive(t, ch); v == last || !yield(v) {
				return
			}
		}
	}
}

func TestAgentCurl_GivesUpIfRejected(t *testing.T) {
	lookProgram(t, "curl")
	r := newAgentRouter(t)
	r.reply["PUT "] = []int{http.StatusForbidden}
	cmd := exec.CommandContext(t.Context(), lookProgram(t, "sh"), "agents/curl/register.sh")
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "ROUTER_URL="+r.server.URL, "AGENT_URL=http://127.0.0.1:9101/", "TOKEN_FILE="+tokenFile)
	if output, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(output), "(403): {\"title\":\"a problem\"}") {
		t.Errorf("got %v and output\n%s\nwant an error with the problem", err, output)
	}
}

// lookPython returns a Python with the libraries of the agent, or skips the test.
func lookPython(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import jwt, cryptography").Run() == nil {
			return name
		}
	}
	t.Skip("no python3 with PyJWT and cryptography")
	return ""
}

func TestAgentPython_ServesTasks(t *testing.T) {
	python := lookPython(t)
	r := newAgentRouter(t)
	r.reply["PUT "] = []int{http.StatusServiceUnavailable}
	r.reply["POST /heartbeat"] = []int{http.StatusNotFound}
	stop := r.startAgent(t, []string{"PORT=0", "PYTHONDONTWRITEBYTECODE=1"}, python, "agents/python/agent.py")
	declared := testkit.Receive(t, r.declared)
	if !contract.ValidAgentID(declared.Instance) || declared.Endpoint.Protocol != contract.ProtocolHTTP {
		t.Errorf("got registration %+v, want a valid instance and protocol http", declared)
	}
	r.checkCalls(t, "PUT ", "POST /heartbeat", "PUT ", "POST /heartbeat")

	header := func(kid, alg string) map[string]any { return map[string]any{"typ": "at+jwt", "alg": alg, "kid": kid} }
	type claims = map[string]any
	for _, tc := range []struct {
		name   string
		token  string
		body   string
		status int
	}{
		{"EdDSA", r.sign(t, header("ed", "EdDSA"), nil), "", 200},
		{"ES256", r.sign(t, header("ec", "ES256"), nil), "", 200},
		{"any task", r.sign(t, header("ed", "EdDSA"), claims{"task_id": nil}), "", 200},
		{"another task", r.sign(t, header("ed", "EdDSA"), claims{"task_id": "t2"}), "", 403},
		{"another agent", r.sign(t, header("ed", "EdDSA"), claims{"aud": "other"}), "", 401},
		{"another issuer", r.sign(t, header("ed", "EdDSA"), claims{"iss": "other"}), "", 401},
		{"another scope", r.sign(t, header("ed", "EdDSA"), claims{"scope": "route:submit"}), "", 401},
		{"expired", r.sign(t, header("ed", "EdDSA"), claims{"exp": time.Now().Add(-time.Minute).Unix()}), "", 401},
		{"no id", r.sign(t, header("ed", "EdDSA"), claims{"jti": nil}), "", 401},
		{"algorithm of the other key", r.sign(t, header("ed", "ES256"), nil), "", 401},
		{"no algorithm", r.sign(t, header("ed", "none"), nil), "", 401},
		{"symmetric algorithm", r.sign(t, header("ed", "HS256"), nil), "", 401},
		{"unknown key", r.sign(t, header("other", "EdDSA"), nil), "", 401},
		{"another type", r.sign(t, map[string]any{"typ": "JWT", "alg": "EdDSA", "kid": "ed"}, nil), "", 401},
		{"key set in the header", r.sign(t, map[string]any{"typ": "at+jwt", "alg": "EdDSA", "kid": "ed", "jku": r.server.URL}, nil), "", 401},
		{"invalid signature", r.sign(t, header("ed", "EdDSA"), nil) + "AAAA", "", 401},
		{"no token", "", "", 401},
		{"not a task", r.sign(t, header("ed", "EdDSA"), nil), "[]", 400},
		{"no prompt", r.sign(t, header("ed", "EdDSA"), nil), `{"task_id":"t1","inputs":{}}`, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := tc.body
			if body == "" {
				body = `{"task_id":"t1","inputs":{"prompt":"one two three"}}`
			}
			status, reply := postTask(t, declared.Endpoint.URL, tc.token, body)
			if status != tc.status {
				t.Errorf("got status %d %s, want %d", status, reply, tc.status)
			}
			if want := `{"task_id": "t1", "status": "success", "data": {"answer": "3 words"}}`; status == 200 && reply != want {
				t.Errorf("got reply %s, want %s", reply, want)
			}
		})
	}
	if err := stop(); err != nil {
		t.Errorf("agent.py: %v", err)
	}
	for call := range receiveUntil(t, r.calls, "POST /drain") {
		if call != "POST /heartbeat" {
			t.Errorf("got call %q before the drain", call)
		}
	}
	r.checkCalls(t, "DELETE ")
}

// postTask sends the body to the agent and returns the status and the reply.
func postTask(t *testing.T, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(reply)
}

// The agent needs no library, so it runs with any Python.
func TestAgentPythonPull_AnswersRequest(t *testing.T) {
	python := lookProgram(t, "python3")
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Listen, cfg.DataDir, cfg.Registry.File = "127.0.0.1:0", filepath.Join(dir, "data"), filepath.Join(dir, "capabilities.yaml")
	registry := "clients: {}\ngrants: { word_counter: { intents: [count_words], domains: [text] } }\n"
	if err := os.WriteFile(cfg.Registry.File, []byte(registry), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stopRouter := context.WithCancel(context.WithoutCancel(t.Context()))
	router, err := app.Start(ctx, cfg, app.Options{LogOutput: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		stopRouter()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stopRouter()
		if err := router.Wait(); err != nil {
			t.Error(err)
		}
	})
	stop := startProgram(t, []string{"ROUTER_URL=" + router.URL(), "PYTHONDONTWRITEBYTECODE=1"}, python, "agents/python/pull_agent.py")
	request := func(method, path, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, router.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		reply, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(reply)
	}
	const prompt = `{"content":{"prompt":"how many words are in this text"}`
	testkit.Eventually(t, "the agent gets requests", func() bool {
		return strings.Contains(request("POST", "/api/v1/route", prompt+`,"options":{"dry_run":true}}`), `"chosen":["word_counter"]`)
	})
	if reply := request("POST", "/api/v1/route", prompt+"}"); !strings.Contains(reply, `"answer":"7 words"`) {
		t.Errorf("got %s, want 7 words", reply)
	}
	if err := stop(); err != nil {
		t.Errorf("pull_agent.py: %v", err)
	}
	testkit.Eventually(t, "the agent has deregistered", func() bool { return strings.Contains(request("GET", "/api/v1/agents", ""), `"agents":[]`) })
}
