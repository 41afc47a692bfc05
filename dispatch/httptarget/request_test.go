package httptarget_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/internal/auth/issuance"
)

func TestNew_RejectsInvalidConfig(t *testing.T) {
	signer := newSigner(t)
	for _, tc := range []struct {
		name   string
		cfg    httptarget.Config
		source httptarget.TokenSource
		want   string
	}{
		{"no issuer", httptarget.Config{}, signer, "issuer"},
		{"no source", httptarget.Config{Issuer: "caprouter"}, nil, "token source"},
		{"negative reuse", httptarget.Config{Issuer: "caprouter", TokenReuse: -1}, signer, "reuse"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := httptarget.New(tc.cfg, tc.source); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New: got %v, want an error about the %s", err, tc.want)
			}
		})
	}
}

func TestTarget_SendsRequest(t *testing.T) {
	var request *http.Request
	var body []byte
	a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
		request = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, successBody)
	})
	c := newCall(a.URL + "/tasks?tenant=x")
	deadline := time.Now().Add(10 * time.Second)
	c.Task.Deadline = deadline
	c.Task.Inputs["zeta"] = json.RawMessage(`{"a":null}`)
	checkOutcome(t, execute(t, newTarget(t), c), want{attempts: 1, health: dispatch.HealthGood})

	if got := request.Method + " " + request.URL.String(); got != "POST /tasks?tenant=x" {
		t.Errorf("request = %q", got)
	}
	h := request.Header
	span := regexp.MustCompile(`^00-` + traceID + `-[0-9a-f]{16}-01$`)
	if got := h.Get("Traceparent"); !span.MatchString(got) {
		t.Errorf("traceparent: got %q, want %v", got, span)
	}
	token, isBearer := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if !isBearer || strings.Count(token, ".") != 2 {
		t.Errorf("Authorization: got %q, want a bearer token", h.Get("Authorization"))
	}
	h.Del("Authorization")
	h.Del("Traceparent")
	h.Del("Content-Length")
	wantHeader := http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Content-Type": {"application/json"},
		"Idempotency-Key": {taskID}, "User-Agent": {"caprouter/1.2.3"},
	}
	if diff := cmp.Diff(wantHeader, h); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	wantBody := `{"task_id":"` + taskID + `","request_id":"r1","trace_id":"` + traceID + `","intent":"code_review","domains":["python"],` +
		`"subtask_title":"Review","confidence":0,"inputs":{"prompt":"look","zeta":{"a":null}},"deadline":"` +
		deadline.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) + `","attempt":1}`
	if diff := cmp.Diff(wantBody, string(body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// A small task is sent in one write. Two writes would cost another system call and
// packet, and wake the agent twice.
func TestTarget_SendsTaskInOneWrite(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	target := newTarget(t)
	writes := httptarget.CountWrites(target)
	for range 3 {
		checkOutcome(t, execute(t, target, newCall(a.URL)), want{attempts: 1, health: dispatch.HealthGood})
	}
	if got := writes.Load(); got != 3 {
		t.Errorf("got %d writes for 3 tasks, want one each", got)
	}
}

func TestTarget_SendsTraceparentForValidTraceID(t *testing.T) {
	for name, id := range map[string]string{
		"none": "", "short": "abc", "zero": strings.Repeat("0", 32), "capitals": strings.ToUpper(traceID), "no hex": strings.Repeat("g", 32),
		"a header": strings.Repeat("a", 30) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := "none"
			a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("Traceparent")
				_, _ = io.WriteString(w, successBody)
			})
			checkOutcome(t, execute(t, newTarget(t), newCall(a.URL, func(c *dispatch.Call) { c.Task.TraceID = id })), want{attempts: 1, health: dispatch.HealthGood})
			if got != "" {
				t.Errorf("traceparent: got %q, want none", got)
			}
		})
	}
}

// The agent is made with agentkit, which verifies the whole request.
func TestTarget_WorksWithAgentkit(t *testing.T) {
	for _, reuse := range []time.Duration{0, time.Minute} {
		t.Run("reuse "+reuse.String(), func(t *testing.T) {
			signer := newSigner(t)
			keys := httptest.NewServer(answering(http.StatusOK, string(signer.keys.JWKS())))
			defer keys.Close()
			var task contract.Task
			var caller string
			agent, err := agentkit.New(agentkit.Config{AgentID: "quality_agent", JWKSURL: keys.URL, Client: keys.Client(), Path: "/tasks"},
				func(ctx context.Context, got contract.Task) (contract.Result, error) {
					task, caller = got, agentkit.Caller(ctx)
					return agentkit.Answer("done"), nil
				})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(agent)
			defer server.Close()
			target := newTargetWith(t, signer, func(c *httptarget.Config) { c.TokenReuse = reuse })
			got := execute(t, target, newCall(server.URL+"/tasks"))
			checkOutcome(t, got, want{attempts: 1, health: dispatch.HealthGood})
			if got.Result == nil || got.Result.Text() != "done" || got.Result.TaskID != taskID {
				t.Errorf("got result %+v, want the agent's", got.Result)
			}
			if task.TaskID != taskID || task.Attempt != 1 || caller != "alice" {
				t.Errorf("got task %s, attempt %d for %q; want %s, 1 for alice", task.TaskID, task.Attempt, caller, taskID)
			}
			// Another agent's name at the same address, so that the token has the wrong audience.
			got = execute(t, target, newCall(server.URL+"/tasks", func(c *dispatch.Call) { c.Agent.ID = "billing_agent" }))
			checkOutcome(t, got, want{
				code: contract.TaskAgentUnavailable, detail: "billing_agent refused the task with 401", attempts: 1, health: dispatch.HealthGood,
			})
		})
	}
}

func TestTarget_ChecksEndpointURL(t *testing.T) {
	const (
		noURL  = "no URL"
		scheme = "neither http nor https"
		plain  = "set dispatch.allow_plain_http: true"
	)
	for _, tc := range []struct {
		url    string
		refuse string // "" = allowed
	}{
		{"http://127.0.0.1:1/", ""},
		{"http://127.9.9.9:1/", ""},
		{"http://[::1]:1/", ""},
		{"http://[::ffff:127.0.0.1]:1/", ""},
		{"http://localhost:1/", ""},
		{"HTTP://127.0.0.1:1/", ""},
		{"http://10.0.0.1:1/", plain},
		{"http://0.0.0.0:1/", plain},
		{"http://[::]:1/", plain},
		{"http://agent.example:1/", plain},
		{"http://localhost.example:1/", plain},
		{"http://127.0.0.1.example:1/", plain},
		{"http://127.0.0.1@agent.example/", plain},
		{"http://2130706433/", plain}, // 127.0.0.1 for some parsers
		{"ftp://127.0.0.1/", scheme},
		{"file:///etc/passwd", noURL},
		{"127.0.0.1:9101/tasks", noURL},
		{"http:///tasks", noURL},
		{"http:127.0.0.1", noURL},
		{"://", noURL},
		{"http://a b/", noURL},
	} {
		t.Run(tc.url, func(t *testing.T) {
			counted := &countingSource{source: newSigner(t)}
			got := execute(t, newTargetWith(t, counted), newCall(tc.url))
			if tc.refuse == "" {
				checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "could not be reached", attempts: 2, health: dispatch.HealthBad})
				return
			}
			checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: tc.refuse})
			if counted.count() != 0 {
				t.Error("got a token issued for an invalid address, want none")
			}
		})
	}
}

func TestTarget_AllowsPlainHTTPIfConfigured(t *testing.T) {
	target := newTarget(t, func(c *httptarget.Config) { c.AllowPlainHTTP = true })
	got := execute(t, target, newCall("http://0.0.0.0:1/"))
	checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "connection refused", attempts: 2, health: dispatch.HealthBad})
}

func TestTarget_VerifiesCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(answering(http.StatusOK, successBody))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the server logs the rejected certificate
	server.StartTLS()
	defer server.Close()
	trusting := newTarget(t, func(c *httptarget.Config) {
		c.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
	})
	for range 2 { // the second call reuses the connection of the first
		checkOutcome(t, execute(t, trusting, newCall(server.URL)), want{attempts: 1, health: dispatch.HealthGood})
	}
	got := execute(t, newTarget(t), newCall(server.URL))
	checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "its TLS certificate is not trusted", attempts: 2, health: dispatch.HealthBad})

	plain := newAgent(t, answering(http.StatusOK, successBody))
	got = execute(t, trusting, newCall(strings.Replace(plain.URL, "http:", "https:", 1)))
	checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "it does not speak TLS", attempts: 2, health: dispatch.HealthBad})
	if len(plain.received()) != 0 {
		t.Error("got the task sent without TLS, want an error")
	}
}

// A request that is lost below TLS is distinguished from an unsent one.
func TestTarget_LostTLSConnectionIsOutcomeUnknown(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	target := newTarget(t, func(c *httptarget.Config) {
		c.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
	})
	checkOutcome(t, execute(t, target, newCall(server.URL)), want{code: contract.TaskOutcomeUnknown, attempts: 1, uncertain: true, health: dispatch.HealthBad})
}

func TestTarget_IgnoresProxyEnvironment(t *testing.T) {
	proxy := newAgent(t, answering(http.StatusOK, successBody))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	target := newTarget(t, func(c *httptarget.Config) { c.AllowPlainHTTP = true })
	got := execute(t, target, newCall("http://agent.invalid:1/"))
	checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "its host name cannot be resolved", attempts: 2, health: dispatch.HealthBad})
	if len(proxy.received()) != 0 {
		t.Error("got the task at the proxy, want none")
	}
}

func TestTarget_KeepsNoCookies(t *testing.T) {
	a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
		if len(r.Cookies()) > 0 {
			t.Error("got a request with a cookie, want none")
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		_, _ = io.WriteString(w, successBody)
	})
	target := newTarget(t)
	for range 2 {
		checkOutcome(t, execute(t, target, newCall(a.URL)), want{attempts: 1, health: dispatch.HealthGood})
	}
}

func TestTarget_TaskThatCannotBeEncoded(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	got := execute(t, newTarget(t), newCall(a.URL, func(c *dispatch.Call) { c.Task.Inputs["bad"] = json.RawMessage(`{`) }))
	checkOutcome(t, got, want{code: contract.TaskAgentUnavailable, detail: "could not be encoded", attempts: 1})
	if len(a.received()) != 0 {
		t.Error("got a request at the agent, want none")
	}
}

var _ httptarget.TokenSource = (*issuance.Issuer)(nil)
