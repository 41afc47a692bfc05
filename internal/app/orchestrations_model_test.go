package app

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// modelServer is a model that gives the replies in sequence, and repeats the last one.
type modelServer struct {
	*fakellm.Server

	mu      sync.Mutex
	replies []fakellm.Behaviour
}

// startModel starts a model server for a kind of planner, which accepts one key, or any key if it
// is empty.
func startModel(t *testing.T, kind, key string) *modelServer {
	t.Helper()
	m := &modelServer{}
	protocol := fakellm.Gemini
	if kind == config.ProviderOpenAI {
		protocol = fakellm.OpenAI
	}
	m.Server = fakellm.Start(t, fakellm.Config{Protocol: protocol, Script: func(*fakellm.Request) fakellm.Behaviour { return m.next() }, Key: key, NoKey: key == ""})
	return m
}

func (m *modelServer) setReplies(replies ...fakellm.Behaviour) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies = replies
}

func (m *modelServer) next() fakellm.Behaviour {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.replies[0]
	if len(m.replies) > 1 {
		m.replies = m.replies[1:]
	}
	return first
}

const operatorsKey = "operators-key-7Hs2Kd9Qm4Xz"

// newModelRunServer starts a router whose planner and verifier are the operator's model. Callers
// may choose among the endpoints.
func newModelRunServer(t *testing.T, kind string, model *modelServer, endpoints ...string) *runServer {
	t.Helper()
	lookup := func(name string) (string, bool) { return operatorsKey, name == "OPERATORS_KEY" }
	return newRunServerIn(t, lookup, func(c *config.Config) {
		c.LLM.Provider, c.LLM.BaseURL, c.LLM.Model, c.LLM.APIKeyEnv = kind, model.URL, model.Model, "OPERATORS_KEY"
		c.Orchestrator.Planner.Kind, c.Orchestrator.Verifier.Kind, c.Orchestrator.EndpointsAllowed = kind, kind, endpoints
	})
}

// pursue sends a goal, and returns the status and reason of its run, or the HTTP status of a
// problem.
func (s *runServer) pursue(t *testing.T, constraints string) (string, *contract.Orchestration) {
	t.Helper()
	status, run := s.send(t, "POST", "/api/v1/orchestrations", s.ana(), `{"goal":"count the calls","constraints":{`+constraints+`}}`)
	if status != http.StatusOK {
		return fmt.Sprint(status), run
	}
	return strings.TrimSpace(string(run.Status) + " " + string(run.Reason)), run
}

// plannedSteps is the plan of a model: two steps, the second with the output of the first.
func plannedSteps(more string) fakellm.Behaviour {
	return fakellm.Text(`{"steps":[` + stepOf("a", "add", `{"n":1}`, "") + "," + stepOf("b", "read", `{"after":"${steps.a.output}"}`, more) + `]}`)
}

// A model plans the goal, and verifies the results.
func TestOrchestrations_WithModel(t *testing.T) {
	verified, refuted := fakellm.Text(`{"verified":true,"reasons":[]}`), fakellm.Text(`{"verified":false,"reasons":["the sum is missing"]}`)
	invalid := plannedSteps(`,"shell":"rm"`)
	for _, kind := range []string{config.ProviderGemini, config.ProviderGenAI, config.ProviderOpenAI} {
		model := startModel(t, kind, operatorsKey)
		s := newModelRunServer(t, kind, model)
		for _, tt := range []struct {
			name     string
			replies  []fakellm.Behaviour
			want     string
			requests int
			calls    int64
			wantText string // text in request number wantAt, "" = none
			wantAt   int    // number of the request
		}{
			{name: "planned, executed and verified", replies: []fakellm.Behaviour{plannedSteps(""), verified}, want: "DONE", requests: 2, calls: 2, wantAt: 1, wantText: "calls"},
			{name: "extra key", replies: []fakellm.Behaviour{invalid, plannedSteps(""), verified}, want: "DONE", requests: 3, calls: 2, wantAt: 1, wantText: "/steps/1/shell"},
			{name: "invalid", replies: []fakellm.Behaviour{invalid}, want: "DEGRADED plan_invalid", requests: 6, wantAt: 5, wantText: "/steps/1/shell"},
			{name: "another plan", replies: []fakellm.Behaviour{plannedSteps(""), refuted, plannedSteps(""), verified}, want: "DONE", requests: 4, calls: 4, wantAt: 2, wantText: "the sum is missing"},
			{name: "never verified", replies: []fakellm.Behaviour{plannedSteps(""), refuted, plannedSteps(""), refuted, plannedSteps(""), refuted}, want: "FAILED verification_failed", requests: 6, calls: 6},
			{name: "no verdict", replies: []fakellm.Behaviour{plannedSteps(""), fakellm.Text("yes")}, want: "DEGRADED verifier_failed", requests: 3, calls: 2},
			{name: "error of the model", replies: []fakellm.Behaviour{fakellm.Status(http.StatusBadRequest)}, want: "DEGRADED planner_failed", requests: 1},
		} {
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				model.setReplies(tt.replies...)
				requests, calls := len(model.Requests()), s.calls.Load()
				got, run := s.pursue(t, "")
				asked := model.Requests()[requests:]
				if calls = s.calls.Load() - calls; got != tt.want || len(asked) != tt.requests || calls != tt.calls {
					t.Fatalf("got %s after %d requests and %d calls, want %s after %d and %d: %+v", got, len(asked), calls, tt.want, tt.requests, tt.calls, run.Errors)
				}
				if !strings.Contains(asked[tt.wantAt].User, tt.wantText) {
					t.Errorf("request %d does not contain %q:\n%s", tt.wantAt, tt.wantText, asked[tt.wantAt].User)
				}
				if tt.want == "DEGRADED plan_invalid" && !strings.Contains(fmt.Sprint(run.Errors), tt.wantText) {
					t.Errorf("got errors %+v, want the key", run.Errors)
				}
				if p := run.Provenance; p.Planner.Kind != kind || p.Verifier.Kind != kind || p.Planner.Model != model.Model {
					t.Errorf("got planner %+v and verifier %+v, want the operator's", p.Planner, p.Verifier)
				}
			})
		}
	}
}

// An endpoint chosen by a caller gets requests only if the operator permits it, and never the
// operator's key.
func TestOrchestrations_EndpointOfCaller(t *testing.T) {
	for _, kind := range []string{config.ProviderGemini, config.ProviderGenAI, config.ProviderOpenAI} {
		operator, permitted, other := startModel(t, kind, operatorsKey), startModel(t, kind, ""), startModel(t, kind, "")
		s := newModelRunServer(t, kind, operator, permitted.URL, operator.URL)
		verified := fakellm.Text(`{"verified":true,"reasons":[]}`)
		for _, tt := range []struct {
			name, role string
			endpoint   *modelServer
			want       string
			operators  int // requests accepted by the operator's endpoint
			callers    int // requests accepted by the caller's endpoint
		}{
			{"planner not on the list", "planner", other, "403", 0, 0},
			{"verifier not on the list", "verifier", other, "403", 0, 0},
			{"planner", "planner", permitted, "DONE", 1, 1},
			{"verifier", "verifier", permitted, "DONE", 1, 1},
			// The operator's endpoint rejects it, because the operator's key is not sent for a
			// caller.
			{"planner at the operator's endpoint", "planner", operator, "DEGRADED planner_failed", 0, 0},
		} {
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				planning, verifying := operator, operator
				if tt.role == "planner" {
					planning = tt.endpoint
				} else {
					verifying = tt.endpoint
				}
				verifying.setReplies(verified)
				if planning.setReplies(plannedSteps("")); planning == verifying {
					planning.setReplies(plannedSteps(""), verified)
				}
				operators, callers := operator.Calls(), permitted.Calls()
				got, run := s.pursue(t, fmt.Sprintf(`"%s_endpoint":%q,"%s_model":%q`, tt.role, tt.endpoint.URL, tt.role, tt.endpoint.Model))
				if operators, callers = operator.Calls()-operators, permitted.Calls()-callers; got != tt.want || operators != tt.operators || callers != tt.callers {
					t.Errorf("got %s after %d and %d requests, want %s after %d of the operator and %d of the caller: %+v",
						got, operators, callers, tt.want, tt.operators, tt.callers, run.Errors)
				}
			})
		}
		if n := len(other.Requests()); n != 0 {
			t.Errorf("%s: got %d requests at the endpoint that is not on the list, want 0", kind, n)
		}
		for _, r := range permitted.Requests() {
			if found := r.FindText(operatorsKey); len(found) > 0 || strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") != "" || r.Header.Get("X-Goog-Api-Key") != "" {
				t.Errorf("%s: got the operator's key at the caller's endpoint in %v: %v", kind, found, r.Header)
			}
		}
	}
}
