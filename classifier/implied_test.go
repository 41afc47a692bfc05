package classifier_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
)

func impliedCatalogue(t *testing.T, extra string) *capabilities.Catalogue {
	t.Helper()
	s, err := capabilities.Parse("registry.yaml", []byte(`clients:
  alone:  {match: {intent: [one], domains: [a, b]}}
  first:  {match: {intent: [pair, apart], domains: [x, c, d]}}
  second: {match: {intent: [pair], domains: [d, c]}}
  third:  {match: {intent: [apart], domains: [e]}}
  wide:   {match: {intent: [wide], domains: ["*"]}}
  bare:   {match: {intent: [bare], domains: []}}
`+extra))
	if err != nil {
		t.Fatal(err)
	}
	return s.Catalogue
}

func TestImplyDomains_AddsDomainOfIntent(t *testing.T) {
	type domains = []string
	implied := func(d string) contract.DomainOrigin {
		return contract.DomainOrigin{Domain: d, Origin: contract.DomainImplied}
	}
	tests := []struct {
		name, intent string
		proposed     domains
		want         domains
		origins      []contract.DomainOrigin // of the implied and of replaced domains
	}{
		{"one agent", "one", domains{"unknown"}, domains{"a"}, []contract.DomainOrigin{implied("a")}},
		{"no domain", "one", nil, domains{"a"}, []contract.DomainOrigin{implied("a")}},
		{"domain of the agent", "one", domains{"b"}, domains{"b"}, nil},
		{"one of several domains of the agent", "one", domains{"e", "b"}, domains{"e", "b"}, nil},
		{"domain of another agent", "one", domains{"e"}, domains{"e", "a"}, []contract.DomainOrigin{implied("a")}},
		{"a third", "one", domains{"e", "c"}, domains{"e", "c", "a"}, []contract.DomainOrigin{implied("a")}},
		{
			"four domains", "one",
			domains{"e", "c", "d"},
			domains{"e", "c", "a"},
			[]contract.DomainOrigin{{Domain: "d", Origin: contract.DomainModel, ReplacedBy: "a"}, implied("a")},
		},
		{"unknown among the domains", "one", domains{"e", "c", "unknown"}, domains{"e", "c", "a"}, []contract.DomainOrigin{implied("a")}},
		{"several agents, common domain", "pair", domains{"unknown"}, domains{"c"}, []contract.DomainOrigin{implied("c")}},
		{"several agents, domain of one", "pair", domains{"x"}, domains{"x"}, nil},
		{"several agents, no common domain", "apart", domains{"unknown"}, domains{"unknown"}, nil},
		{"any domain", "wide", domains{"unknown"}, domains{"unknown"}, nil},
		{"any domain of another agent", "wide", domains{"e"}, domains{"e"}, nil},
		{"agent without domains", "bare", domains{"unknown"}, domains{"unknown"}, nil},
		{"unknown", contract.Unknown, domains{"unknown"}, domains{"unknown"}, nil},
		{"removed intent", "gone", domains{"e"}, domains{"e"}, nil},
	}
	registry := impliedCatalogue(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			proposed := contract.Classification{Intent: tt.intent, Domains: tt.proposed, DomainOrigins: byModel(tt.proposed), Subtasks: []contract.Subtask{}}
			got := proposed
			classifier.ImplyDomains(registry, &got)
			changed := slices.DeleteFunc(slices.Clone(got.DomainOrigins), func(o contract.DomainOrigin) bool {
				return o.Origin != contract.DomainImplied && o.ReplacedBy == ""
			})
			if diff := cmp.Diff(tt.want, got.Domains); diff != "" {
				t.Errorf("domains (-want +got):\n%s", diff)
			}
			if !slices.Equal(changed, tt.origins) {
				t.Errorf("got origins %+v, want %+v", changed, tt.origins)
			}
			off := proposed
			classifier.ImplyDomains(impliedCatalogue(t, "routing: {implied_domains: false}\n"), &off)
			if diff := cmp.Diff(proposed, off); diff != "" {
				t.Errorf("with implied_domains: false (-before +after):\n%s", diff)
			}
		})
	}
}

func TestImplyDomains_CompletesSubtasks(t *testing.T) {
	stored := contract.Classification{Intent: "one", Domains: []string{"e"}, Subtasks: []contract.Subtask{
		{Title: "like the request"},
		{Title: "inherits a domain that fits", Intent: "apart"},
		{Title: "inherits none that fits", Intent: "pair"},
		{Title: "has its own", Intent: "one", Domains: []string{"b"}},
		{Title: "has none of its intent", Intent: "pair", Domains: []string{"a"}},
		{Title: "has its own of the request's intent", Domains: []string{"c"}},
		{Title: "unknown", Intent: contract.Unknown, Domains: []string{contract.Unknown}},
	}}
	got := stored
	classifier.ImplyDomains(impliedCatalogue(t, ""), &got)
	want := []string{"[]", "[]", "[c]", "[b]", "[a c]", "[c a]", "[unknown]"}
	for i, sub := range got.Subtasks {
		if fmt.Sprint(sub.Domains) != want[i] {
			t.Errorf("subtask %q: got domains %v, want %s", sub.Title, sub.Domains, want[i])
		}
	}
	if stored.Subtasks[2].Domains != nil || len(stored.Subtasks[4].Domains) != 1 {
		t.Errorf("got %+v, want the stored classification unchanged", stored.Subtasks)
	}
	anywhere := contract.Classification{Intent: contract.Unknown, Domains: []string{}, Subtasks: []contract.Subtask{{Title: "x", Intent: "wide"}}}
	classifier.ImplyDomains(impliedCatalogue(t, ""), &anywhere)
	if fmt.Sprint(anywhere.Subtasks[0].Domains) != "[unknown]" {
		t.Errorf("got domains %v for an agent of any domain, want unknown", anywhere.Subtasks[0].Domains)
	}
}

// A second application changes nothing. A proposed domain is kept, unless it is replaced as the
// third one.
func TestImplyDomains_IsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := func(what string, from ...string) *rapid.Generator[[]string] {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 3, rapid.ID)
		}
		d := &capabilities.Definition{Routing: capabilities.DefaultRouting()}
		for i := range rapid.IntRange(0, 4).Draw(t, "agents") {
			d.Agents = append(d.Agents, &contract.RegistryEntry{ID: fmt.Sprint("a", i), Match: contract.Match{
				Intent: label("intents", "i", "j", "k").Draw(t, "intents"), Domains: label("domains", "p", "q", "r", "s", "*").Draw(t, "domains"),
			}})
		}
		s, err := capabilities.NewSnapshot(d)
		if err != nil {
			t.Fatal(err)
		}
		intent := rapid.SampledFrom([]string{"i", "j", "k", contract.Unknown})
		domains := label("domains", "p", "q", "r", "s", contract.Unknown)
		clf := contract.Classification{Intent: intent.Draw(t, "intent"), Domains: domains.Draw(t, "proposed"), Subtasks: []contract.Subtask{}}
		clf.DomainOrigins = byModel(clf.Domains)
		for range rapid.IntRange(0, 3).Draw(t, "subtasks") {
			sub := contract.Subtask{Title: "t"}
			if rapid.Bool().Draw(t, "own intent") {
				sub.Intent = intent.Draw(t, "subtask intent")
			}
			if rapid.Bool().Draw(t, "own domains") {
				sub.Domains = domains.Draw(t, "subtask domains")
				sub.DomainOrigins = byModel(sub.Domains)
			}
			clf.Subtasks = append(clf.Subtasks, sub)
		}
		once := clf
		classifier.ImplyDomains(s.Catalogue, &once)
		twice := once
		classifier.ImplyDomains(s.Catalogue, &twice)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("second application (-first +second):\n%s", diff)
		}
		if len(once.Domains) < 1 || len(once.Domains) > contract.MaxDomains {
			t.Fatalf("got domains %v, want 1 to %d", once.Domains, contract.MaxDomains)
		}
		for _, domain := range clf.Domains {
			replaced := slices.ContainsFunc(once.DomainOrigins, func(o contract.DomainOrigin) bool { return o.Domain == domain && o.ReplacedBy != "" })
			if domain != contract.Unknown && !slices.Contains(once.Domains, domain) && (!replaced || len(clf.Domains) != contract.MaxDomains) {
				t.Fatalf("got domains %v of %v, want %s", once.Domains, clf.Domains, domain)
			}
		}
	})
}

func TestWithoutImplied_ReturnsProposal(t *testing.T) {
	registry := impliedCatalogue(t, "")
	for _, tt := range []struct {
		intent         string
		proposed, want []string
	}{
		{"one", []string{"unknown"}, []string{"unknown"}},
		{"one", []string{"e", "c"}, []string{"e", "c"}},
		{"one", []string{"e", "c", "d"}, []string{"e", "c", "d"}},
		{"one", []string{"b"}, []string{"b"}},
		{contract.Unknown, []string{}, []string{}},
	} {
		clf := contract.Classification{
			Intent: tt.intent, Domains: tt.proposed, DomainOrigins: byModel(tt.proposed),
			Subtasks: []contract.Subtask{{Intent: "pair"}, {Intent: "one", Domains: []string{"e"}, DomainOrigins: byModel([]string{"e"})}},
		}
		completed := clf
		classifier.ImplyDomains(registry, &completed)
		before := fmt.Sprint(completed)
		undone := classifier.WithoutImplied(completed)
		if fmt.Sprint(undone.Domains) != fmt.Sprint(tt.want) || len(undone.Subtasks[0].Domains) > 1 || fmt.Sprint(undone.Subtasks[1].Domains) != "[e]" {
			t.Errorf("%v: got domains %v and subtasks %v, want %v and those proposed", tt.proposed, undone.Domains, undone.Subtasks, tt.want)
		}
		if fmt.Sprint(completed) != before {
			t.Errorf("%v: got the classification modified", tt.proposed)
		}
		classifier.ImplyDomains(registry, &undone)
		if fmt.Sprint(undone.Domains, undone.Subtasks) != fmt.Sprint(completed.Domains, completed.Subtasks) {
			t.Errorf("%v: got %v after the second application, want %v", tt.proposed, undone, completed)
		}
	}
}
