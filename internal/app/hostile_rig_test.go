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

// hostileRig is a whole router whose model belongs to the attacker, with real
// agents that note who called.
type hostileRig struct {
	*testServer
	model  *fakellm.Server
	oracle oracle

	mu     sync.Mutex
	calls  []agentCall
	result func(agentID string) contract.Result // what agents answer
	down   []string                             // agents that answer 503; set before the first request

	tally tally
}

// agentCall is a task as it arrived at an agent.
type agentCall struct{ agent, audience, subject string }

// tally counts what a test did.
type tally struct {
	requests, chosen, believed, violations, repeated int
	agents                                           map[string]int // how often each was chosen
}

func (y *tally) String() string {
	return fmt.Sprintf("%d requests, the model believed in %d, somebody chosen in %d (%v), words of a model or an agent name one that is not to be seen in %d; %d violations",
		y.requests, y.believed, y.chosen, y.agents, y.repeated, y.violations)
}

// cardNumber is data of the kind refund_agent is for.
const cardNumber = "4111 1111 1111 1111"

func startHostile(t *testing.T, provider, routing string) *hostileRig {
	t.Helper()
	model := fakellm.Start(t, fakellm.Config{Protocol: providers()[provider], Script: fakellm.ObeyInjections()})
	r := &hostileRig{model: model, result: func(string) contract.Result { return said("done") }, tally: tally{agents: map[string]int{}}}
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
	r.testServer = startServerIn(t, modelEnv, registry, asks(provider, model), func(cfg *config.Config) {
		cfg.Classifier.TimeoutMS = 12_000 // nothing here is decided by how fast this machine is
		cfg.Telemetry.LogLevel, cfg.Registry.HotReload = "error", false
	})
	for id, a := range agents {
		a.trust(r.testServer)
		a.mu.Lock()
		a.http = r.noting(id, a.http)
		a.mu.Unlock()
	}
	r.oracle = oracle{
		registry: r.core.router.View().Catalogue,
		card:     func(text string) bool { return strings.Contains(text, cardNumber) },
	}
	return r
}

// said is a result with a text.
func said(text string) contract.Result {
	return contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": quotedJSON(text)}}
}

func quotedJSON(text string) json.RawMessage {
	raw, err := strictjson.Marshal(text)
	if err != nil {
		panic(err) // a text of this test is no UTF-8
	}
	return raw
}

// noting records a task before the agent sees it: also one the agent refuses.
func (r *hostileRig) noting(id string, next http.Handler) http.Handler {
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

// claimsOf reads aud and sub of a bearer token; the agent checks its signature.
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

// called returns the calls since the last time it was asked.
func (r *hostileRig) called() []agentCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// answers sets what agents answer from now on.
func (r *hostileRig) answers(result func(agentID string) contract.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = result
}

// send routes the request for the caller and holds what comes of it to rule 1.
func (r *hostileRig) send(what string, req *contract.Request, caller *contract.Caller) *contract.Response {
	r.t.Helper()
	resp, err := r.core.router.Handle(r.t.Context(), req, caller)
	if err != nil {
		r.t.Fatalf("%s for %q: %v", what, caller.Subject, err)
	}
	q := &asked{req: req, caller: caller, resp: resp}
	wrong := append(r.oracle.violations(q), r.wrongCalls(q)...)
	wrong = append(wrong, r.leaks(q)...)
	r.count(q, len(wrong))
	if len(wrong) > 0 && r.tally.violations <= 10 {
		r.t.Errorf("%s for %q: %s\nprompt %.300q\ndecision %+v", what, caller.Subject, strings.Join(wrong, "; "), req.Content.Prompt, resp.Decision)
	}
	return resp
}

// rejects sends a request that names an agent which the caller may not use.
func (r *hostileRig) rejects(what string, req *contract.Request, caller *contract.Caller) {
	r.t.Helper()
	resp, err := r.core.router.Handle(r.t.Context(), req, caller)
	if e, ok := errors.AsType[*contract.Error](err); !ok || e.Code != contract.CodeInvalidRequest {
		r.t.Errorf("%s for %q: got %+v, %v, want invalid_request", what, caller.Subject, resp, err)
	}
}

func (r *hostileRig) count(q *asked, wrong int) {
	y := &r.tally
	y.requests++
	if src := q.resp.Decision.Classification.Source; src == contract.SourceLLM || src == contract.SourceCache {
		y.believed++
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

// wrongCalls looks at the agents' own books: only those of the plan were called,
// each with a token that is for it and for this caller.
func (r *hostileRig) wrongCalls(q *asked) (wrong []string) {
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

// leaks are the agents the answer shows to a caller who may not see them. What
// the model itself said is counted apart.
func (r *hostileRig) leaks(q *asked) []string {
	if q.caller.AllAgents || slices.Contains(q.caller.Scopes, "admin") {
		return nil
	}
	raw, err := strictjson.Marshal(q.resp)
	if err != nil {
		return []string{err.Error()}
	}
	known, bySomebody := wordsOfCaller(q.req), wordsOfOthers(q.resp)
	for _, a := range r.oracle.registry.Agents {
		if !sees(q.caller, a.ID) && strings.Contains(bySomebody, a.ID) && !strings.Contains(known, a.ID) {
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

// wordsOfOthers are what a model and agents say in an answer.
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

// victims are the agents a request may be stolen for.
func (r *hostileRig) victims() []*contract.RegistryEntry { return r.oracle.registry.Agents }

// dry is a dry run of the text.
func dry(text string) *contract.Request {
	return &contract.Request{Content: contract.Content{Prompt: text}, Options: contract.Options{DryRun: true}}
}
