package visibility_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/visibility"
)

// scene is a registry of unique words and a stored response of one of its callers. A model
// that follows an attacker may repeat every word of its prompt, so each of its texts contains
// all words.
type scene struct {
	*rapid.T
	catalogue capabilities.Catalogue
	caller    *contract.Caller
	response  *contract.Response
}

func TestFilter_RevealsNoHiddenWord(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		before := mustMarshal(rt, s.response)
		colleague := &contract.Caller{Subject: "colleague", Tenant: "north"}
		for _, owner := range []*contract.Caller{s.caller, colleague} {
			filter := visibility.NewFilter(&s.catalogue, s.caller, owner)
			s.check("Response", filter.Response(s.response))
			s.check("Decision", filter.Decision(s.response.Decision))
			s.check("Classification", filter.Classification(&s.response.Decision.Classification))
			entry := contract.DecisionEntry{Decision: s.response.Decision, Tasks: s.response.Tasks, Omitted: s.response.Omitted}
			filter.FilterLogEntry(&entry)
			s.check("FilterLogEntry", entry)
			for _, lookup := range []*contract.Decision{nil, s.response.Decision} {
				events := filter.Events(func() *contract.Decision { return lookup })
				s.check("Event", events.Event(&contract.Event{Type: contract.EventTaskStarted, Task: &s.response.Tasks[0]}))
				s.check("Event", events.Event(&contract.Event{Type: contract.EventDecision, Decision: s.response.Decision}))
				s.check("Event", events.Event(&contract.Event{Type: contract.EventFinal, Response: s.response}))
			}
		}
		if after := mustMarshal(rt, s.response); after != before {
			rt.Fatalf("the filter changed the stored response from %s to %s", before, after)
		}
		admin := &contract.Caller{Subject: "root", Scopes: []string{contract.ScopeAdmin}}
		if got := visibility.NewFilter(&s.catalogue, admin, s.caller).Response(s.response); got != s.response {
			rt.Fatalf("got %s for an administrator, want the stored response", mustMarshal(rt, got))
		}
		everyAgent := &contract.Caller{Subject: "other", Tenant: "north", AllAgents: true}
		got := *visibility.NewFilter(&s.catalogue, everyAgent, s.caller).Response(s.response)
		want, decision := *s.response, *s.response.Decision
		decision.Hidden = nil
		want.Decision = &decision
		hidden := &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "no agent"}
		want.Tasks = []contract.TaskReport{{SubtaskTitle: want.Tasks[0].SubtaskTitle, Error: hidden, FailedOver: []contract.FailedAttempt{{Error: hidden}}}}
		if mustMarshal(rt, &got) != mustMarshal(rt, &want) {
			rt.Fatalf("got %s for a caller with every agent, want all except the hidden agents of the owner", mustMarshal(rt, &got))
		}
	})
}

func drawScene(t *rapid.T) *scene {
	s := &scene{T: t, caller: &contract.Caller{Subject: "ana", Tenant: "north", Scopes: []string{"route:submit", "agent:", "agent:unknown"}}}
	intents, domains, ids := uniqueWords("wi", 4), uniqueWords("wd", 5), uniqueWords("wa", rapid.IntRange(1, 5).Draw(t, "agents"))
	for _, id := range ids {
		some := func(what string, from []string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 2, rapid.ID).Draw(t, id+" "+what)
		}
		a := &contract.RegistryEntry{ID: id, Match: contract.Match{Intent: some("intents", intents), Domains: some("domains", append(domains, "*"))}}
		a.Examples = map[string][]string{a.Match.Intent[0]: {"please xx" + id}}
		s.catalogue.Agents = append(s.catalogue.Agents, a)
		if rapid.IntRange(0, 2).Draw(t, "may use "+id) == 0 {
			s.caller.Scopes = append(s.caller.Scopes, "agent:"+id)
		}
	}
	s.catalogue.Routing = capabilities.DefaultRouting()
	s.response = s.drawResponse(append(intents, contract.Unknown, "winvented"), append(domains, contract.Unknown, "winvented"), ids)
	return s
}

func (s *scene) drawResponse(intents, domains, ids []string) *contract.Response {
	intent, domain := rapid.SampledFrom(intents), rapid.SliceOfNDistinct(rapid.SampledFrom(domains), 1, 3, rapid.ID)
	all := strings.Join(slices.Concat(intents, domains, ids), " ")
	c := contract.Classification{
		Intent: intent.Draw(s.T, "intent"), Domains: domain.Draw(s.T, "domains"), Subtasks: []contract.Subtask{},
		Source:       rapid.SampledFrom([]contract.Source{contract.SourceLLM, contract.SourceLexical, contract.SourceCache}).Draw(s.T, "source"),
		Alternatives: []contract.IntentScore{{Intent: intent.Draw(s.T, "alternative")}, {Intent: intent.Draw(s.T, "alternative")}},
		Cascade:      &contract.Cascade{Intent: intent.Draw(s.T, "cascade")},
	}
	for _, d := range domain.Draw(s.T, "origins") {
		o := contract.DomainOrigin{Domain: d, Origin: rapid.SampledFrom([]contract.OriginKind{contract.DomainNamed, contract.DomainAlias, contract.DomainImplied}).Draw(s.T, "origin")}
		if o.Origin == contract.DomainAlias {
			o.Text = "also" + d
		}
		if rapid.Bool().Draw(s.T, "replaced") {
			o.ReplacedBy = rapid.SampledFrom(domains).Draw(s.T, "replaced by")
		}
		c.DomainOrigins = append(c.DomainOrigins, o)
	}
	byModel := c.Source != contract.SourceLexical
	if byModel {
		c.ModelUse = &contract.ModelUse{Calls: []contract.ModelCall{{Reply: all, Detail: all}}}
	}
	for i := range rapid.IntRange(0, 3).Draw(s.T, "subtasks") {
		sub := contract.Subtask{Title: fmt.Sprint("pay bill ", i)}
		if byModel {
			sub.Title, sub.Reason = all[i:], all
		}
		if rapid.Bool().Draw(s.T, "subtask has labels") {
			sub.Intent, sub.Domains = intent.Draw(s.T, "subtask intent"), domain.Draw(s.T, "subtask domains")
			sub.DomainOrigins = c.DomainOrigins
			if !byModel && rapid.Bool().Draw(s.T, "title is the intent") {
				sub.Title = sub.Intent
			}
		}
		c.Subtasks = append(c.Subtasks, sub)
	}
	for _, a := range s.catalogue.Agents {
		for _, kind := range []contract.EvidenceKind{contract.EvidenceExample, contract.EvidenceKeyword, contract.EvidenceName, contract.EvidenceDescription, contract.EvidenceAlias, contract.EvidenceTypo, contract.EvidenceSynonym, contract.EvidenceSimilar} {
			c.Evidence = append(c.Evidence, contract.Evidence{Kind: kind, Text: "please xx" + a.ID, Intent: a.Match.Intent[0], Missing: []string{"xx" + a.ID}})
		}
	}
	d := &contract.Decision{Classification: c, TieBreak: &contract.TieBreak{Winner: ids[0], Over: ids[len(ids)-1]}, Standby: ids}
	d.OnlyAgent = rapid.SampledFrom(ids).Draw(s.T, "only agent")
	unsupported := &contract.Unsupported{Detail: all, AcceptedIntents: intents[:4], AcceptedDomains: domains[:5]}
	for _, a := range s.catalogue.Agents {
		role := rapid.SampledFrom([]contract.Role{contract.RoleCandidate, contract.RoleStandby}).Draw(s.T, "role")
		candidate := contract.Candidate{AgentID: a.ID, Role: role, Gates: []contract.Gate{{Gate: "threshold"}}}
		candidate.MatchedDomains = slices.DeleteFunc(slices.Clone(c.Domains), func(d string) bool { return !slices.Contains(a.Match.Domains, d) })
		d.Candidates, d.Hidden = append(d.Candidates, candidate), append(d.Hidden, candidate)
		unsupported.Nearest = append(unsupported.Nearest, contract.NearestMiss{AgentID: a.ID})
		unsupported.NearestReading = &contract.NearestReading{AgentID: a.ID, Intent: a.Match.Intent[0]}
		unsupported.Examples = append(unsupported.Examples, a.Examples[a.Match.Intent[0]]...)
	}
	resp := &contract.Response{Decision: d, Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}}
	resp.Data.Unsupported, resp.Data.Classification, resp.Data.Degraded, resp.Data.Answer = unsupported, &d.Classification, true, all
	title := "pay"
	if len(c.Subtasks) > 0 {
		title = c.Subtasks[0].Title
	}
	failure := &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "no agent", Address: all, Reply: all}
	resp.Tasks = append(resp.Tasks, contract.TaskReport{SubtaskTitle: title, Error: failure, FailedOver: []contract.FailedAttempt{{Error: failure}}})
	resp.Omitted = append(resp.Omitted, contract.Omitted{Title: title, Intent: c.Intent, Domains: c.Domains})
	for i := range 2 {
		o := contract.ClarificationOption{ID: fmt.Sprint(i), Intent: intent.Draw(s.T, "option"), Domains: domain.Draw(s.T, "option domains")}
		o.Label = contract.OptionLabel(o.Intent, o.Domains)
		resp.Data.Options = append(resp.Data.Options, o)
	}
	return resp
}

// uniqueWords returns words none of which is a part of another.
func uniqueWords(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%03dzq", prefix, i)
	}
	return list
}

// hiddenWords are the ids, labels and examples that the caller must not see.
func (s *scene) hiddenWords() []string {
	visible := map[string]bool{}
	var list []string
	for _, a := range s.catalogue.Agents {
		list = append(list, a.ID, "xx"+a.ID)
		if visibility.MaySeeAgent(s.caller, a.ID) {
			for _, word := range slices.Concat(a.Match.Intent, a.Match.Domains, []string{a.ID, "xx" + a.ID}) {
				visible[word] = true
			}
		}
	}
	list = slices.Concat(list, uniqueWords("wi", 4), uniqueWords("wd", 5), []string{"winvented"})
	return slices.DeleteFunc(list, func(word string) bool { return visible[word] })
}

func (s *scene) check(where string, filtered any) {
	s.Helper()
	text := mustMarshal(s.T, filtered)
	for _, word := range append(s.hiddenWords(), `"hidden"`) {
		if strings.Contains(text, word) {
			s.Fatalf("got %s in the result of %s for the scopes %v: %s", word, where, s.caller.Scopes, text)
		}
	}
}

func mustMarshal(t *rapid.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
