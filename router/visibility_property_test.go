package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/visibility"
	"github.com/caprouter/caprouter/router"
)

// scene is a registry of unique words, and a hostile classification, which may repeat every word of
// the registry.
type scene struct {
	*rapid.T
	agents   map[string]*contract.RegistryEntry
	policy   string
	proposed contract.Classification
}

func drawScene(t *rapid.T) *scene {
	s := &scene{T: t, agents: map[string]*contract.RegistryEntry{}}
	intents, domains := words("wi", 4), words("wd", 5)
	for _, id := range words("wa", rapid.IntRange(1, 5).Draw(t, "agents")) {
		some := func(what string, from []string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 2, rapid.ID).Draw(t, id+" "+what)
		}
		a := &contract.RegistryEntry{ID: id, Match: contract.Match{Intent: some("intents", intents), Domains: some("domains", append(domains, "*"))}}
		a.Examples = map[string][]string{a.Match.Intent[0]: {"please xx" + id}}
		s.agents[id] = a
	}
	s.policy = rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "policy")
	intent := rapid.SampledFrom(append(intents, contract.Unknown, "winvented"))
	domain := rapid.SliceOfNDistinct(rapid.SampledFrom(append(domains, contract.Unknown, "winvented")), 1, 3, rapid.ID)
	s.proposed = contract.Classification{
		Intent: intent.Draw(t, "intent"), Domains: domain.Draw(t, "domains"), Subtasks: []contract.Subtask{},
		Confidence:   rapid.SampledFrom([]float64{0.4, 0.9}).Draw(t, "confidence"),
		Source:       rapid.SampledFrom([]contract.Source{contract.SourceLLM, contract.SourceLexical, contract.SourceCache}).Draw(t, "source"),
		Alternatives: []contract.IntentScore{{Intent: intent.Draw(t, "next"), Confidence: 0.9}, {Intent: intent.Draw(t, "third"), Confidence: 0.3}},
		Cascade:      &contract.Cascade{Intent: intent.Draw(t, "cascade")},
	}
	leak := strings.Join(slices.Concat(intents, domains, slices.Sorted(maps.Keys(s.agents))), " ")
	if s.proposed.Source != contract.SourceLexical {
		s.proposed.ModelUse = &contract.ModelUse{Calls: []contract.ModelCall{{Reply: leak, Detail: leak}}}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "subtasks") {
		sub := contract.Subtask{Title: fmt.Sprint("pay bill ", i)}
		if s.proposed.Source != contract.SourceLexical {
			sub.Title, sub.Reason = leak[i:], leak
		}
		if rapid.Bool().Draw(t, "own intent") {
			sub.Intent, sub.Domains = intent.Draw(t, "subtask intent"), domain.Draw(t, "subtask domains")
			if s.proposed.Source == contract.SourceLexical && rapid.Bool().Draw(t, "titled by its intent") {
				sub.Title = sub.Intent
			}
		}
		s.proposed.Subtasks = append(s.proposed.Subtasks, sub)
	}
	return s
}

// words returns unique words, none of which is a substring of another.
func words(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%03dzq", prefix, i)
	}
	return list
}

// install installs the scene's registry and classification.
func (s *scene) install(h *harness) {
	var b strings.Builder
	b.WriteString("clients:\n")
	for _, id := range slices.Sorted(maps.Keys(s.agents)) {
		m := s.agents[id].Match
		fmt.Fprintf(&b, "  %s: {match: {intent: [%s], domains: [\"%s\"]}, examples: {%s: [\"please xx%s\"]}, endpoint: {protocol: http, url: \"http://127.0.0.1:1/\"}}\n",
			id, strings.Join(m.Intent, ", "), strings.Join(m.Domains, `", "`), m.Intent[0], id)
	}
	fmt.Fprintf(&b, "fallback: {policy: %s}\nrouting: {auto_split_if_conflict: %t}\n", s.policy, rapid.Bool().Draw(s.T, "split"))
	snapshot, err := capabilities.Parse("scene.yaml", []byte(b.String()))
	if err != nil {
		s.Fatal(err)
	}
	d, err := dispatch.New(dispatch.Config{}, map[string]dispatch.Target{contract.ProtocolHTTP: h.target})
	if err != nil {
		s.Fatal(err)
	}
	h.SetView(router.NewView(snapshot, d))
	h.classifier.proposal = s.proposed
}

func (s *scene) drawCaller(subject string) *contract.Caller {
	c := &contract.Caller{Subject: subject, Tenant: "north", Scopes: []string{"route:submit", "agent:", "agent:nobody"}}
	for _, id := range slices.Sorted(maps.Keys(s.agents)) {
		if rapid.IntRange(0, 2).Draw(s.T, subject+" may use "+id) == 0 {
			c.Scopes = append(c.Scopes, "agent:"+id)
		}
	}
	return c
}

// secrets returns the words that the caller must not see.
func (s *scene) secrets(c *contract.Caller) []string {
	open := map[string]bool{}
	for id, a := range s.agents {
		if visibility.MaySeeAgent(c, id) {
			for _, word := range slices.Concat(a.Match.Intent, a.Match.Domains, []string{id, "xx" + id}) {
				open[word] = true
			}
		}
	}
	var list []string
	for id := range s.agents {
		list = append(list, id, "xx"+id)
	}
	list = slices.Concat(list, words("wi", 4), words("wd", 5), []string{"winvented"})
	return slices.DeleteFunc(list, func(word string) bool { return open[word] || strings.HasPrefix(word, "xx") && open[word[2:]] })
}

// check fails the test if the value or the error contains a secret of the caller.
func (s *scene) check(c *contract.Caller, where string, shown any, err error) {
	s.Helper()
	data, jsonErr := json.Marshal(shown)
	if jsonErr != nil {
		s.Fatal(jsonErr)
	}
	text := string(data)
	if err != nil {
		text += err.Error()
	}
	for _, word := range s.secrets(c) {
		if !c.AllAgents && strings.Contains(text, word) {
			s.Fatalf("%s contains %s, which %s %v may not see: %s", where, word, c.Subject, c.Scopes, text)
		}
	}
	if strings.Contains(text, `"hidden"`) {
		s.Fatalf("%s contains hidden agents: %s", where, text)
	}
}

// For any classification, no result of any operation contains a word of agents that the caller may
// not use, neither for its own requests nor for those of a colleague. An administrator sees the
// stored response.
func TestRouter_RevealsNoHiddenWord(t *testing.T) {
	h := newHarness(t)
	admin := &contract.Caller{Subject: "root", Scopes: []string{"admin"}}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		s.install(h)
		caller, colleague := s.drawCaller("ana"), s.drawCaller("bob")
		n++
		log, err := h.Decisions(t.Context(), contract.DecisionQuery{Since: time.Now().Add(time.Hour)}, admin)
		if err != nil {
			rt.Fatal(err)
		}
		ids := s.sendAll(h, caller, fmt.Sprint("key", n))
		for _, id := range ids {
			s.readAll(h, colleague, id)
			s.readAll(h, &contract.Caller{Subject: "every agent", Tenant: "north", AllAgents: true}, id)
			s.checkRecord(h, admin, caller, id)
		}
		for _, c := range []*contract.Caller{caller, colleague} {
			page, err := h.Decisions(t.Context(), contract.DecisionQuery{Cursor: log.NextCursor, Limit: 1000}, c)
			s.check(c, "Decisions", page, err)
			if err != nil {
				rt.Fatal(err)
			}
			if c == caller && len(page.Decisions) < len(ids) {
				rt.Fatalf("got %d decisions of the caller, want %d", len(page.Decisions), len(ids))
			}
			tickets, err := h.tickets.Tickets(t.Context(), contract.TicketQuery{}, c)
			s.check(c, "Tickets", tickets, err)
			for i := range tickets.Tickets {
				ticket, err := h.tickets.Ticket(t.Context(), tickets.Tickets[i].TicketID, c)
				s.check(c, "Ticket", ticket, err)
			}
		}
	})
}

// sendAll sends the request in every mode and checks the results. It returns the ids of the stored
// requests.
func (s *scene) sendAll(h *harness, c *contract.Caller, key string) (ids []string) {
	ctx := context.Background()
	clf, err := h.Classify(ctx, newRequest(), c)
	s.check(c, "Classify", clf, err)
	dry, err := h.Handle(ctx, newRequest(func(r *contract.Request) { r.Options.DryRun = true }), c)
	s.check(c, "a dry run", dry, err)
	once := func(r *contract.Request) { r.Idempotency = &contract.Idempotency{Key: key} }
	for range 2 { // the second time it is a replay
		resp, err := h.Handle(ctx, newRequest(once), c)
		s.check(c, "Handle", resp, err)
		ids = append(ids, resp.RequestID)
	}
	ids = slices.Compact(ids)
	resp, err := h.Stream(ctx, newRequest(), c, func(ev *contract.Event) { s.check(c, "Stream: "+string(ev.Type), ev, nil) })
	s.check(c, "Stream", resp, err)
	ids = append(ids, resp.RequestID)
	for _, cancel := range []bool{false, true} {
		resp, err := h.Submit(ctx, newRequest(asynchronous), c)
		s.check(c, "Submit", resp, err)
		ids = append(ids, resp.RequestID)
		if cancel {
			resp, err := h.Cancel(ctx, resp.RequestID, c)
			s.check(c, "Cancel", resp, err)
		}
	}
	for _, id := range ids {
		if !s.readAll(h, c, id) {
			s.Fatalf("request %s: got not_found for its owner, want it", id)
		}
	}
	return ids
}

// readAll reads a request by every operation, and reports whether it exists for the caller.
func (s *scene) readAll(h *harness, c *contract.Caller, id string) bool {
	ctx := context.Background()
	ended := errors.New("ended")
	err := h.Events(ctx, id, c, 0, func(_ uint64, ev *contract.Event) error {
		s.check(c, "Events: "+string(ev.Type), ev, nil)
		if ev.Type == contract.EventFinal {
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) {
		s.check(c, "Events", nil, err)
	}
	resp, err := h.Request(ctx, id, c)
	s.check(c, "Request", resp, err)
	again, cancelErr := h.Cancel(ctx, id, c)
	s.check(c, "Cancel", again, cancelErr)
	if err != nil && (code(err) != contract.CodeNotFound || code(cancelErr) != contract.CodeNotFound) {
		s.Fatalf("got %v and %v, want not_found from both", err, cancelErr)
	}
	return err == nil
}

// checkRecord checks the stored response and its view for an administrator.
func (s *scene) checkRecord(h *harness, admin, caller *contract.Caller, id string) {
	ctx := context.Background()
	whole, err := h.Request(ctx, id, admin)
	if err != nil {
		s.Fatalf("administrator: got error %v, want none", err)
	}
	d := whole.Decision
	if d == nil {
		return // it was cancelled first
	}
	proposed := s.proposed // the view of a caller with every right
	classifier.ImplyDomains(h.View().Catalogue, &proposed)
	if d.Classification.Intent != proposed.Intent || !slices.Equal(d.Classification.Domains, proposed.Domains) || len(d.Classification.Alternatives) != 2 {
		s.Fatalf("administrator: got classification %+v, want %+v", d.Classification, proposed)
	}
	var content string
	h.eventually(func() bool { // the response of an asynchronous request is available before its record
		found, err := h.auditLog.Find(ctx, id)
		if err != nil || found.Outcome == nil {
			return false
		}
		content = string(found.Outcome.Content)
		return true
	})
	for i := range d.Hidden {
		c := &d.Hidden[i]
		if caller.MayUse(c.AgentID) || c.Eligible || c.Gates[0].Gate != "entitlement" || !strings.Contains(content, c.AgentID) {
			s.Fatalf("got hidden candidate %+v, want a recorded one that the caller may not use", c)
		}
	}
	least := 65
	if d.FallbackUsed != nil || whole.Status == contract.StatusClarify {
		least = 1
	} else if d.Classification.Tied || len(d.Classification.Subtasks) > 0 {
		return // an agent must declare all tied intents, and each subtask is matched by itself
	}
	want, hidden := 0, len(d.Hidden)
	for agentID, a := range s.agents {
		if !caller.MayUse(agentID) && plainScore(a, proposed.Intent, proposed.Domains, 0) >= least {
			want++
		}
	}
	if hidden != want {
		s.Fatalf("got %d hidden agents in the record, want %d: %+v", hidden, want, d)
	}
}
