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

// modelServer is a model that gives one reply after another, and then the last one again.
type modelServer struct {
	*fakellm.Server

	mu      sync.Mutex
	replies []fakellm.Behaviour
}

// startModel starts the server of a model for a kind of planner, which accepts one key, or
// any if it is empty.
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

func (m *modelServer) say(replies ...fakellm.Behaviour) {
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

// newModelRunServer starts a router whose planner and verifier are the model of the operator.
// Callers may choose the endpoints.
func newModelRunServer(t *testing.T, kind string, model *modelServer, endpoints ...string) *runServer {
	t.Helper()
	lookup := func(name string) (string, bool) { return operatorsKey, name == "OPERATORS_KEY" }
	return newRunServerIn(t, lookup, func(c *config.Config) {
		c.LLM.Provider, c.LLM.BaseURL, c.LLM.Model, c.LLM.APIKeyEnv = kind, model.URL, model.Model, "OPERATORS_KEY"
		c.Orchestrator.Planner.Kind, c.Orchestrator.Verifier.Kind, c.Orchestrator.EndpointsAllowed = kind, kind, endpoints
	})
}

// pursue sends a goal, and returns the end of its run, or the HTTP status of a problem.
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

// A model plans the goal, and verifies what was done.
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
			told     string // in the request after the first that it answers, "" = nothing
			toldAt   int    // the request
		}{
			{name: "planned, executed and verified", replies: []fakellm.Behaviour{plannedSteps(""), verified}, want: "DONE", requests: 2, calls: 2, toldAt: 1, told: "calls"},
			{name: "extra key", replies: []fakellm.Behaviour{invalid, plannedSteps(""), verified}, want: "DONE", requests: 3, calls: 2, toldAt: 1, told: "/steps/1/shell"},
			{name: "invalid", replies: []fakellm.Behaviour{invalid}, want: "DEGRADED plan_invalid", requests: 6, toldAt: 5, told: "/steps/1/shell"},
			{name: "another plan", replies: []fakellm.Behaviour{plannedSteps(""), refuted, plannedSteps(""), verified}, want: "DONE", requests: 4, calls: 4, toldAt: 2, told: "the sum is missing"},
			{name: "never verified", replies: []fakellm.Behaviour{plannedSteps(""), refuted, plannedSteps(""), refuted, plannedSteps(""), refuted}, want: "FAILED verification_failed", requests: 6, calls: 6},
			{name: "no verdict", replies: []fakellm.Behaviour{plannedSteps(""), fakellm.Text("yes")}, want: "DEGRADED verifier_failed", requests: 3, calls: 2},
			{name: "error of the model", replies: []fakellm.Behaviour{fakellm.Status(http.StatusBadRequest)}, want: "DEGRADED planner_failed", requests: 1},
		} {
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				model.say(tt.replies...)
				requests, calls := len(model.Requests()), s.calls.Load()
				got, run := s.pursue(t, "")
				asked := model.Requests()[requests:]
				if calls = s.calls.Load() - calls; got != tt.want || len(asked) != tt.requests || calls != tt.calls {
					t.Fatalf("got %s after %d requests and %d calls, want %s after %d and %d: %+v", got, len(asked), calls, tt.want, tt.requests, tt.calls, run.Errors)
				}
				if !strings.Contains(asked[tt.toldAt].User, tt.told) {
					t.Errorf("request %d does not contain %q:\n%s", tt.toldAt, tt.told, asked[tt.toldAt].User)
				}
				if tt.want == "DEGRADED plan_invalid" && !strings.Contains(fmt.Sprint(run.Errors), tt.told) {
					t.Errorf("got errors %+v, want the key", run.Errors)
				}
				if p := run.Provenance; p.Planner.Kind != kind || p.Verifier.Kind != kind || p.Planner.Model != model.Model {
					t.Errorf("got planner %+v and verifier %+v, want the operator's", p.Planner, p.Verifier)
				}
			})
		}
	}
}

// An endpoint of a caller gets requests only if the operator permits it, and never the key of
// the operator.
func TestOrchestrations_EndpointOfCaller(t *testing.T) {
	for _, kind := range []string{config.ProviderGemini, config.ProviderGenAI, config.ProviderOpenAI} {
		operator, permitted, other := startModel(t, kind, operatorsKey), startModel(t, kind, ""), startModel(t, kind, "")
		s := newModelRunServer(t, kind, operator, permitted.URL, operator.URL)
		verified := fakellm.Text(`{"verified":true,"reasons":[]}`)
		for _, tt := range []struct {
			name, role string
			endpoint   *modelServer
			want       string
			operators  int // requests to the operator's endpoint that it accepts
			callers    int // requests to the caller's
		}{
			{"planner off the list", "planner", other, "403", 0, 0},
			{"verifier off the list", "verifier", other, "403", 0, 0},
			{"planner", "planner", permitted, "DONE", 1, 1},
			{"verifier", "verifier", permitted, "DONE", 1, 1},
			// It is refused there, because the caller does not get the key of the operator.
			{"planner at the operator's endpoint", "planner", operator, "DEGRADED planner_failed", 0, 0},
		} {
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				planning, verifying := operator, operator
				if tt.role == "planner" {
					planning = tt.endpoint
				} else {
					verifying = tt.endpoint
				}
				verifying.say(verified)
				if planning.say(plannedSteps("")); planning == verifying {
					planning.say(plannedSteps(""), verified)
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
			t.Errorf("%s: the endpoint off the list got %d requests", kind, n)
		}
		for _, r := range permitted.Requests() {
			if found := r.FindText(operatorsKey); len(found) > 0 || strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") != "" || r.Header.Get("X-Goog-Api-Key") != "" {
				t.Errorf("%s: the caller's endpoint got the key of the operator in %v: %v", kind, found, r.Header)
			}
		}
	}
}
