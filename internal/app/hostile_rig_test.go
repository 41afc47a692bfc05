package app

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// hostileHarness is a complete router whose model is controlled by the attacker, with real agents
// that record their callers.
type hostileHarness struct {
	*testServer
	model  *fakellm.Server
	oracle oracle

	mu     sync.Mutex
	calls  []agentCall
	result func(agentID string) contract.Result // results of the agents
	down   []string                             // agents that answer 503; set before the first request

	tally tally
}

// agentCall is a task as received by an agent.
type agentCall struct{ agent, audience, subject string }

// tally counts requests and decisions.
type tally struct {
	requests, chosen, accepted, violations, repeated int
	agents                                           map[string]int // how often each was chosen
}

func (y *tally) String() string {
	return fmt.Sprintf("%d requests, the reply of the model used in %d, an agent chosen in %d (%v), text of a model or an agent names a hidden agent in %d; %d violations",
		y.requests, y.accepted, y.chosen, y.agents, y.repeated, y.violations)
}

// cardNumber is data of the class that refund_agent requires.
const cardNumber = "4111 1111 1111 1111"

func startHostile(t *testing.T, provider, routing string) *hostileHarness {
	t.Helper()
	model := fakellm.Start(t, fakellm.Config{Protocol: providers()[provider], Script: fakellm.ObeyInjections()})
	r := &hostileHarness{model: model, result: func(string) contract.Result { return resultWithText("done") }, tally: tally{agents: map[string]int{}}}
	agents := map[string]*testAgent{}
	registry := registryWith(routing, func(id string) string {
		if agents[id] == nil {
			agents[id] = startAgent(t, id, func(_ context.Context, task contract.Task) (contract.Result, error) {
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.result(id), nil
			})
		}
		return agents[id].url
	})
	r.testServer = startServerIn(t, modelEnv, registry, useModel(provider, model), func(cfg *config.Config) {
		cfg.Classifier.TimeoutMS = 12_000 // no result may depend on the speed of the machine
		cfg.Telemetry.LogLevel, cfg.Registry.HotReload = "error", false
	})
	for id, a := range agents {
		a.trust(r.testServer)
		a.mu.Lock()
		a.http = r.recording(id, a.http)
		a.mu.Unlock()
	}
	r.oracle = oracle{
		registry: r.core.router.View().Catalogue,
		card:     func(text string) bool { return strings.Contains(text, cardNumber) },
	}
	return r
}

// resultWithText returns a result with a text.
func resultWithText(text string) contract.Result {
	return contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": quotedJSON(text)}}
}

func quotedJSON(text string) json.RawMessage {
	raw, err := strictjson.Marshal(text)
	if err != nil {
		panic(err) // the text is not UTF-8
	}
	return raw
}

// recording records a task before the agent verifies it, even if the agent rejects it.
func (r *hostileHarness) recording(id string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		call := agentCall{agent: id}
		call.audience, call.subject = claimsOf(req.Header.Get("Authorization"))
		r.mu.Lock()
		r.calls = append(r.calls, call)
		r.mu.Unlock()
		if slices.Contains(r.down, id) {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// claimsOf returns aud and sub of a bearer token; the agent verifies its signature.
func claimsOf(authorization string) (audience, subject string) {
	var claims struct {
		Audience string `json:"aud"`
		Subject  string `json:"sub"`
	}
	parts := strings.Split(strings.TrimPrefix(authorization, "Bearer "), ".")
	if len(parts) != 3 {
		return "no token", ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = strictjson.UnmarshalAllowUnknown(payload, &claims)
	}
	if err != nil {
		return "no claims: " + err.Error(), ""
	}
	return claims.Audience, claims.Subject
}

// called returns the calls since its last call.
func (r *hostileHarness) called() []agentCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// setResults sets the results of the agents.
func (r *hostileHarness) setResults(result func(agentID string) contract.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = result
}

// send routes the request for the caller and checks rule 1 for the response.
func (r *hostileHarness) send(what string, req *contract.Request, caller *contract.Caller) *contract.Response {
	r.t.Helper()
	resp, err := r.core.router.Handle(r.t.Context(), req, caller)
	if err != nil {
		r.t.Fatalf("%s for %q: %v", what, caller.Subject, err)
	}
	q := &observedRequest{req: req, caller: caller, resp: resp}
	wrong := append(r.oracle.violations(q), r.wrongCalls(q)...)
	wrong = append(wrong, r.leaks(q)...)
	r.count(q, len(wrong))
	if len(wrong) > 0 && r.tally.violations <= 10 {
		r.t.Errorf("%s for %q: %s\nprompt %.300q\ndecision %+v", what, caller.Subject, strings.Join(wrong, "; "), req.Content.Prompt, resp.Decision)
	}
	return resp
}

// checkRejected sends a request with the agent_id of an agent that the caller may not use.
func (r *hostileHarness) checkRejected(what string, req *contract.Request, caller *contract.Caller) {
	r.t.Helper()
	resp, err := r.core.router.Handle(r.t.Context(), req, caller)
	if e, ok := errors.AsType[*contract.Error](err); !ok || e.Code != contract.CodeInvalidRequest {
		r.t.Errorf("%s for %q: got %+v, %v, want invalid_request", what, caller.Subject, resp, err)
	}
}

func (r *hostileHarness) count(q *observedRequest, wrong int) {
	y := &r.tally
	y.requests++
	if src := q.resp.Decision.Classification.Source; src == contract.SourceLLM || src == contract.SourceCache {
		y.accepted++
	}
	if len(q.resp.Decision.Chosen) > 0 {
		y.chosen++
	}
	for _, id := range q.resp.Decision.Chosen {
		y.agents[id]++
	}
	if wrong > 0 {
		y.violations++
	}
}

// wrongCalls checks the calls recorded by the agents: only planned agents were called, each with a
// token for it and for this caller.
func (r *hostileHarness) wrongCalls(q *observedRequest) (wrong []string) {
	planned := slices.Concat(q.resp.Decision.Chosen, q.resp.Decision.Standby)
	calls := r.called()
	for _, c := range calls {
		switch {
		case q.req.Options.DryRun:
			wrong = append(wrong, c.agent+" was called in a dry run")
		case !slices.Contains(planned, c.agent), !entitledTo(q.caller, c.agent):
			wrong = append(wrong, c.agent+" was called and is not in the plan")
		case c.audience != c.agent || c.subject != q.caller.Subject:
			wrong = append(wrong, fmt.Sprintf("%s got a token for %q of %q", c.agent, c.audience, c.subject))
		}
	}
	if !q.req.Options.DryRun && len(calls) == 0 && len(q.resp.Decision.Chosen) > 0 {
		wrong = append(wrong, "nobody was called")
	}
	return wrong
}

// leaks returns the hidden agents named in the response. Text of the model is counted separately.
func (r *hostileHarness) leaks(q *observedRequest) []string {
	if q.caller.AllAgents || slices.Contains(q.caller.Scopes, "admin") {
		return nil
	}
	raw, err := strictjson.Marshal(q.resp)
	if err != nil {
		return []string{err.Error()}
	}
	known, bySomebody := wordsOfCaller(q.req), wordsOfOthers(q.resp)
	for _, a := range r.oracle.registry.Agents {
		if !maySee(q.caller, a.ID) && strings.Contains(bySomebody, a.ID) && !strings.Contains(known, a.ID) {
			r.tally.repeated++
			break
		}
	}
	return r.oracle.leaks(q, string(raw), known+bySomebody)
}

func wordsOfCaller(req *contract.Request) string {
	var words strings.Builder
	words.WriteString(req.Content.Prompt)
	for _, turn := range req.History {
		words.WriteString(turn.Content)
	}
	if req.AgentID != nil {
		words.WriteString(*req.AgentID)
	}
	return words.String()
}

// wordsOfOthers returns the text of the model and of agents in a response.
func wordsOfOthers(resp *contract.Response) string {
	clf := &resp.Decision.Classification
	var words strings.Builder
	fmt.Fprint(&words, clf.Subtasks)
	if clf.ModelUse != nil {
		fmt.Fprint(&words, clf.Calls)
	}
	if resp.Data.AnsweredBy != nil || resp.Data.Mode == contract.DataDispatch {
		words.WriteString(resp.Data.Answer)
	}
	for i := range resp.Data.Results {
		for _, raw := range resp.Data.Results[i].Data {
			words.WriteString(string(raw))
		}
		fmt.Fprint(&words, resp.Data.Results[i].Explanations)
	}
	for i := range resp.Omitted {
		words.WriteString(resp.Omitted[i].Title)
	}
	return words.String()
}

// victims returns the agents that an attack may favour.
func (r *hostileHarness) victims() []*contract.RegistryEntry { return r.oracle.registry.Agents }

// dry returns a dry run of the text.
func dry(text string) *contract.Request {
	return &contract.Request{Content: contract.Content{Prompt: text}, Options: contract.Options{DryRun: true}}
}
