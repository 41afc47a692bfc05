package fallback_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/lexical"
)

func ticketOf(prompts ...string) *contract.Ticket {
	t := &contract.Ticket{
		Count: len(prompts), Callers: 2, Reasons: map[string]int{fallback.ReasonNoMatch: len(prompts)},
		PerDay: []contract.DayCount{{Day: "2026-01-02", Count: len(prompts)}},
	}
	for _, p := range prompts {
		t.Examples = append(t.Examples, contract.TicketExample{Prompt: p})
	}
	return t
}

var unknownRequest = contract.Classification{Intent: contract.Unknown, Domains: []string{contract.Unknown}}

// loadSuggestion returns the only agent of a suggested registry. Lint may only report missing
// examples, and only if the ticket has none.
func loadSuggestion(t *testing.T, yaml string) *contract.RegistryEntry {
	t.Helper()
	s, err := capabilities.Parse("suggestion.yaml", []byte(yaml))
	if err != nil {
		t.Fatalf("parse the suggestion: %v\n%s", err, yaml)
	}
	for _, f := range capabilities.Lint(s) {
		if f.Severity != capabilities.SeverityInfo || f.Rule != capabilities.RuleMissingExamples || strings.Contains(yaml, "examples:") {
			t.Errorf("got findings %v of\n%s", f, yaml)
		}
	}
	agents := s.Entries()
	if len(agents) != 1 {
		t.Fatalf("got %d agents, want 1:\n%s", len(agents), yaml)
	}
	return agents[0]
}

// TestPropose_SuggestsRegistry compares one complete suggestion.
func TestPropose_SuggestsRegistry(t *testing.T) {
	ticket := ticketOf("please book a flight to Lisbon for [EMAIL_1]", "book me a flight and a hotel for Monday", "book two flights")
	ticket.Locales = map[string]int{"en": 2, "pt-BR": 1}
	got := fallback.Propose(unmet(registry(), local, "book a flight", fallback.ReasonNoMatch, unknownRequest,
		nearMiss("rag_agent", 0, 0.3, 0, "docs", contract.Gate{Gate: "threshold", Reason: "score 0.30 is below the threshold 0.65"})),
		ticket, []string{"phone", "email"})
	want := fallback.Suggestion{
		SuggestedYAML: `# A suggestion made from 3 requests that no agent serves yet. It loads as it is.
# Fill in the url of the agent, check names and examples, then add the
# agent to your registry.
version: 1
clients:
  book_flight_agent:
    description: "Serves requests such as: please book a flight to Lisbon for …" # describe what it does: models read this
    match:
      intent: ["book_flight"]
      domains: ["flight"]
    examples:
      "book_flight":
        - "please book a flight to Lisbon for …"
        - "book me a flight and a hotel for Monday"
        - "book two flights"
    restore: none # the requests contain email, phone; list the kinds that it needs in clear text
    endpoint:
      protocol: http
      url: http://127.0.0.1:9101/tasks # fill in the url of the agent
`,
		Requirements: []string{
			"serve the intent book_flight on flight",
			"understand requests in en (2), pt-BR (1)",
			"take 3 requests so far, from 2 callers, at most 3 a day",
			"handle personal data in the requests (email, phone), or declare restore: none to get them masked",
			"answer within the time callers wait, or accept a task with 202 and deliver its result later",
			"check the access token of every task, and answer with success, partial or failure",
		},
		Risks: []string{
			"the requests contain personal data (email, phone): agree on what may be stored before the agent gets any",
			"overlap with rag_agent, which scored 0.30 and lacks 0.35: widen it instead, or list these requests in its not_for",
			"3 distinct examples only: without a model, the confidence of an intent is calibrated if it has at least 5",
			"the names book_flight and flight are made of frequent words: choose better ones",
		},
		Detail: "it is not clear what is to be done: ask for one of doc_answering, retrieval_qa",
		Nearest: []contract.NearestMiss{{
			AgentID: "rag_agent", Score: 0.3, MissingScore: 0.35,
			Gates: []contract.Gate{{Gate: "threshold", Reason: "score 0.30 is below the threshold 0.65"}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("suggestion (-want +got):\n%s", diff)
	}
	loadSuggestion(t, got.SuggestedYAML)
}

func TestPropose_ChoosesNames(t *testing.T) {
	taken := snapshot(&contract.RegistryEntry{ID: "book_flight_agent", Match: contract.Match{Intent: []string{"Book-Flight"}, Domains: []string{"travel"}}})
	tests := []struct {
		name     string
		registry *capabilities.Catalogue
		ticket   *contract.Ticket
		change   func(*contract.Ticket)

		id, intent string
		domains    []string
	}{
		{name: "made of words", ticket: ticketOf("book a flight", "book a flight to Rome"), id: "book_flight_agent", intent: "book_flight", domains: []string{"flight"}},
		{name: "existing intent in another spelling, id in use", registry: taken, ticket: ticketOf("book a flight"), id: "book_flight_agent_2", intent: "Book-Flight", domains: []string{"flight"}},
		{
			name: "proposed intent of most requests", ticket: ticketOf("the bill", "the invoice"),
			change: func(t *contract.Ticket) {
				t.Intents, t.Domains = map[string]int{"cost_analysis": 1, contract.Unknown: 1}, map[string]int{"azure": 2, "python": 1, "gone": 2}
			},
			id: "cost_analysis_agent", intent: "cost_analysis", domains: []string{"azure", "python"},
		},
		{
			name: "proposed intent of few requests", ticket: ticketOf("water the plants", "water plants", "water the plants daily"),
			change: func(t *contract.Ticket) {
				t.Intents, t.Domains = map[string]int{"cost_analysis": 1}, map[string]int{"azure": 0}
			},
			id: "water_plants_agent", intent: "water_plants", domains: []string{"plants"},
		},
		{name: "accents", ticket: ticketOf("traduza a certidão"), id: "traduza_certidao_agent", intent: "traduza_certidao", domains: []string{"certidao"}},
		{name: "another script", ticket: ticketOf("翻译"), id: "request_agent", intent: "翻译_request", domains: []string{"翻译"}},
		{name: "Cyrillic letters", ticket: ticketOf("Сделай ещё расчёт"), id: "proposed_agent", intent: "сделай_ещё", domains: []string{"ещё"}},
		{name: "called an agent", ticket: ticketOf("evil agent"), id: "evil_agent", intent: "evil_agent", domains: []string{"agent"}},
		{name: "already ends with agent", ticket: ticketOf("จองตั๋วเครื่องบินไปเชียงใหม่"), id: "new_request_agent", intent: "new_request", domains: []string{"general"}},
		{name: "script without spaces", ticket: ticketOf("book\rflights"), id: "book_flights_agent", intent: "book_flights", domains: []string{"flights"}},
		{name: "one word", ticket: ticketOf("karaoke"), id: "karaoke_request_agent", intent: "karaoke_request", domains: []string{"karaoke"}},
		{name: "numbers and codes", ticket: ticketOf("0x12 a1b2 7"), id: "new_request_agent", intent: "new_request", domains: []string{"general"}},
		{name: "placeholders only", ticket: ticketOf("[EMAIL_1] [PHONE_2]"), id: "new_request_agent", intent: "new_request", domains: []string{"general"}},
		{name: "nothing", ticket: ticketOf(), id: "new_request_agent", intent: "new_request", domains: []string{"general"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.registry == nil {
				tt.registry = registry()
			}
			if tt.change != nil {
				tt.change(tt.ticket)
			}
			a := loadSuggestion(t, fallback.Propose(unmet(tt.registry, local, "x", fallback.ReasonNoMatch, unknownRequest), tt.ticket, nil).SuggestedYAML)
			if a.ID != tt.id || !slices.Equal(a.Match.Intent, []string{tt.intent}) || !slices.Equal(a.Match.Domains, tt.domains) {
				t.Errorf("got %s %q %q, want %s [%q] %q", a.ID, a.Match.Intent, a.Match.Domains, tt.id, tt.intent, tt.domains)
			}
		})
	}
}

// A lexical model that is trained with the suggestion recognizes the requests of the ticket.
func TestPropose_SuggestionMatchesRequests(t *testing.T) {
	prompts := []string{"book a flight to Lisbon for [EMAIL_1]", "I need two flights for Monday", "reserve um voo para Lisboa", "帮我订一张去上海的机票"}
	s, err := capabilities.Parse("suggestion.yaml", []byte(fallback.Propose(unmet(registry(), local, "x", fallback.ReasonNoMatch, unknownRequest), ticketOf(prompts...), nil).SuggestedYAML))
	if err != nil {
		t.Fatal(err)
	}
	m := lexical.Train(classifier.BuildCorpus(s.Catalogue))
	for _, prompt := range prompts {
		p := contract.Classification{Intent: m.Classify(prompt).Intent, Domains: m.Classify(prompt).Domains}
		classifier.ImplyDomains(s.Catalogue, &p)
		if p.Intent != s.Catalogue.Agents[0].Match.Intent[0] || len(p.Domains) == 0 {
			t.Errorf("%q: got %s %q, want %s and a domain", prompt, p.Intent, p.Domains, s.Catalogue.Agents[0].Match.Intent[0])
		}
	}
}

func TestPropose_HidesUnusableAgents(t *testing.T) {
	ticket := ticketOf("cost of azure", "azure cost by month")
	ticket.Intents, ticket.Domains = map[string]int{"cost_analysis": 2}, map[string]int{"databricks": 2}
	candidate := nearMiss("billing_agent", 0.5, 0, 0, "", contract.Gate{Gate: "entitlement", Reason: "billing_agent is not among the caller's agents"})
	for _, caller := range []*contract.Caller{nil, {Subject: "eve"}, callerOf("rag_agent")} {
		got := fallback.Propose(unmet(registry(), caller, "x", fallback.ReasonNotEntitled, unknownRequest, candidate), ticket, nil)
		all := fmt.Sprint(got)
		for _, secret := range []string{"billing_agent", "cost_analysis", "databricks"} {
			if strings.Contains(all, secret) {
				t.Errorf("%v: got %s in\n%s", caller, secret, all)
			}
		}
	}
	if got := fallback.Propose(unmet(registry(), local, "x", fallback.ReasonNotEntitled, unknownRequest, candidate), ticket, nil); !strings.Contains(fmt.Sprint(got.Risks), "billing_agent") {
		t.Errorf("got risks %q, want billing_agent among them for a caller that may use it", got.Risks)
	}
}

func TestPropose_ListsRisks(t *testing.T) {
	ticket := ticketOf("a b cd", "a b cd", "Review, the code", "review the code!")
	ticket.Callers = 1
	ticket.Reasons = map[string]int{fallback.ReasonGated: 1, fallback.ReasonLowConfidence: 2, fallback.ReasonDivergent: 1}
	got := fallback.Propose(unmet(registry(), local, "x", fallback.ReasonGated, unknownRequest,
		nearMiss("quality_agent", 0.5, 0.3, 0, "python", contract.Gate{Gate: "scopes", Reason: "it requires the scope beta"})), ticket, nil)
	want := []string{
		"overlap with quality_agent, which scored 0.80 and may not take the request: it requires the scope beta",
		"1 request of 4 fit an agent that may not serve them: granting access may be sufficient",
		"2 requests of 4 were understood with too little confidence: more examples for an existing intent may be sufficient",
		"1 request of 4 had several readings: they may belong to more than one agent",
		"2 distinct examples only: without a model, the confidence of an intent is calibrated if it has at least 5",
		"all requests are from one caller",
	}
	for i, w := range want {
		if i >= len(got.Risks) || got.Risks[i] != w {
			t.Fatalf("got risks %q, want %q first", got.Risks, want)
		}
	}
}

// A suggestion states which agent may serve the requests already, also if it is made of the
// ticket alone, and only to those that may use the agent.
func TestPropose_NamesAgentOfNearestReading(t *testing.T) {
	unsure := contract.Classification{Intent: contract.Unknown, Alternatives: []contract.IntentScore{{Intent: "doc_answering", Confidence: 0.4}}}
	reading := &contract.NearestReading{AgentID: "rag_agent", Intent: "doc_answering", Confidence: 0.4}
	const risk = "rag_agent may serve these requests already, as doc_answering: if so, add them to its examples (caprouter teach) in place of a new agent"
	ticket := ticketOf("is there a handbook")
	ticket.NearestReading = reading
	for name, u := range map[string]*fallback.Unmet{
		"request":           unmet(registry(), local, "x", fallback.ReasonNoMatch, unsure),
		"ticket":            unmet(registry(), local, "x", "", unknownRequest),
		"one agent":         unmet(registry(), callerOf("rag_agent"), "x", "", unknownRequest),
		"hidden":            unmet(registry(), callerOf("quality_agent"), "x", fallback.ReasonNoMatch, unsure),
		"hidden, by ticket": unmet(registry(), callerOf("quality_agent"), "x", "", unknownRequest),
	} {
		want := reading
		if strings.HasPrefix(name, "hidden") {
			want = nil
		}
		got := fallback.Propose(u, ticket, nil)
		if diff := cmp.Diff(want, got.NearestReading); diff != "" || slices.Contains(got.Risks, risk) != (want != nil) {
			t.Errorf("%s: risks %q, nearest reading (-want +got):\n%s", name, got.Risks, diff)
		}
	}
}

func TestPropose_ListsRiskOfMissingName(t *testing.T) {
	got := fallback.Propose(unmet(registry(), local, "x", fallback.ReasonNoMatch, unknownRequest), ticketOf("จองตั๋วเครื่องบินไปเชียงใหม่"), nil).Risks
	want := "no word of the requests can be used as a name, for example because the script has no spaces: choose better names than new_request and general"
	if last := got[len(got)-1]; last != want {
		t.Errorf("got %q, want %q", last, want)
	}
}

// Registry and decision are missing if, for example, the content of a request was erased.
func TestPropose_WithoutRequest(t *testing.T) {
	got := fallback.Propose(&fallback.Unmet{Caller: local}, ticketOf("book a flight"), nil)
	if a := loadSuggestion(t, got.SuggestedYAML); a.ID != "book_flight_agent" {
		t.Errorf("got %s, want book_flight_agent", a.ID)
	}
}

// FuzzPropose checks that the suggestion is valid and passes lint for any prompt.
func FuzzPropose(f *testing.F) {
	for _, seed := range []string{
		"book a flight", "# comment\n- \"x\": [y]", "a\u2028b\u0085c\ufeff", "\xff\xfe", "\\x00 \\", "%s %d", "null yes ~ true", "[EMAIL_1] [x", "😀👩‍💻 çedilha", "unknown Unknown *",
		"机票 ｺｰﾄﾞ", "```\ncode\n``` x", "e\u0301a\u0301 x\u0300y", strings.Repeat("word ", 300), "' '' \" \t\r\n", "\u202eevil", "---\n...\n!!tag &a *a",
	} {
		f.Add(seed, "and another")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		got := fallback.Propose(unmet(registry(), local, "x", fallback.ReasonNoMatch, unknownRequest), ticketOf(one, two, one+" "+two), []string{"email"})
		loadSuggestion(t, got.SuggestedYAML)
		if !utf8.ValidString(got.SuggestedYAML) {
			t.Errorf("got %q, want UTF-8", got.SuggestedYAML)
		}
	})
}
