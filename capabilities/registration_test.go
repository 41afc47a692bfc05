package capabilities

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

// validRegistration returns a valid registration.
func validRegistration() *contract.Registration {
	return &contract.Registration{
		Match:    contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
		Examples: map[string][]string{"count_words": {"how many words are in this?"}},
		Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: "http://127.0.0.1:9101/"},
	}
}

func TestCheckRegistration_ReportsMistakes(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("text %d", i)
	}
	labels := make([]string, 201)
	for i := range labels {
		labels[i] = fmt.Sprintf("label_%d", i)
	}
	for name, tc := range map[string]struct {
		change func(*contract.Registration)
		want   []contract.ErrorDetail // by prefix
	}{
		"valid": {func(*contract.Registration) {}, nil},
		"no intent": {
			func(r *contract.Registration) { r.Match.Intent, r.Examples = nil, nil },
			[]contract.ErrorDetail{{Pointer: "/match/intent", Detail: "declares no intent"}},
		},
		"example of another intent": {
			func(r *contract.Registration) { r.Examples["a/b~c"] = []string{"x"} },
			[]contract.ErrorDetail{{Pointer: "/examples/a~1b~0c", Detail: `examples for "a/b~c", which this agent does not declare`}},
		},
		"too many examples": {
			func(r *contract.Registration) { r.Examples["count_words"] = many },
			[]contract.ErrorDetail{{Pointer: "/examples/count_words", Detail: "has 101 examples"}},
		},
		"too many keywords": {
			func(r *contract.Registration) { r.Keywords = slices.Concat(many, many) },
			[]contract.ErrorDetail{{Pointer: "/keywords", Detail: "has 202 keywords"}},
		},
		"too many labels": {
			func(r *contract.Registration) {
				r.Examples, r.Match = nil, contract.Match{Intent: labels, Domains: labels}
			},
			[]contract.ErrorDetail{
				{Pointer: "/match/intent", Detail: "has 201 intents"},
				{Pointer: "/match/domains", Detail: "has 201 domains"},
			},
		},
		"too many negative examples": {
			func(r *contract.Registration) { r.NotFor = many[:21] },
			[]contract.ErrorDetail{{Pointer: "/not_for", Detail: "has 21 texts"}},
		},
		"no endpoint": {
			func(r *contract.Registration) { r.Endpoint = contract.Endpoint{} },
			[]contract.ErrorDetail{{Pointer: "/endpoint", Detail: "is missing"}},
		},
		"no address": {
			func(r *contract.Registration) { r.Endpoint.URL = "" },
			[]contract.ErrorDetail{{Pointer: "/endpoint/url", Detail: "protocol http needs a url"}},
		},
		"misspelt protocol": {
			func(r *contract.Registration) { r.Endpoint.Protocol = "htttp" },
			[]contract.ErrorDetail{{Pointer: "/endpoint/protocol", Detail: `must be http or pull for an agent that registers itself, got "htttp"; did you mean "http"?`}},
		},
		"protocol only for files": {
			func(r *contract.Registration) { r.Endpoint = contract.Endpoint{Protocol: contract.ProtocolMCP} },
			[]contract.ErrorDetail{
				{Pointer: "/endpoint/protocol", Detail: `must be http or pull for an agent that registers itself, got "mcp"`},
			},
		},
		"names and numbers": {
			func(r *contract.Registration) { r.Instance, r.LeaseTTLS, r.MaxInFlight = "Pod 1", 1, -1 },
			[]contract.ErrorDetail{
				{Pointer: "/max_in_flight", Detail: "must be"},
				{Pointer: "/instance", Detail: `"Pod 1" is not the name of an instance`},
				{Pointer: "/lease_ttl_s", Detail: "must be between 2 and 3600 seconds, got 1"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := validRegistration()
			tc.change(r)
			got, err := CheckRegistration("word_counter", r)
			must(t, err)
			beginsWith := cmp.Comparer(func(a, b contract.ErrorDetail) bool {
				return a.Pointer == b.Pointer && (strings.HasPrefix(a.Detail, b.Detail) || strings.HasPrefix(b.Detail, a.Detail))
			})
			if diff := cmp.Diff(tc.want, got, beginsWith, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

// newRegisteredSnapshot returns the snapshot of the file and of the agent w, which has registered
// itself.
func newRegisteredSnapshot(t *testing.T, file string, r *contract.Registration) *Snapshot {
	t.Helper()
	d, err := ParseDefinition("f.yaml", []byte(file))
	must(t, err)
	if r != nil {
		d.Agents = append(d.Agents, r.Entry("w"))
	}
	s, err := NewSnapshot(d)
	must(t, err)
	return s
}

const grantW = "clients: {}\ngrants: {w: {intents: [x, y], domains: [d], priority: 7, requires: {scopes: [s]}"

func TestSnapshot_LimitsRegisteredAgents(t *testing.T) {
	claim := contract.Registration{
		Match:              contract.Match{Intent: []string{"pay", "x"}, Domains: []string{"d", "*", "money"}},
		Examples:           map[string][]string{"x": {"do x"}, "pay": {"pay me"}},
		AcceptsDataClasses: contract.DataClasses{"all"},
	}
	none, all, email := contract.DataClasses{"none"}, contract.DataClasses{"all"}, contract.DataClasses{"email"}
	for name, tc := range map[string]struct {
		file              string
		intents, domains  []string
		priority          int
		accepted, restore contract.DataClasses
		refused           []string
	}{
		"no grant": {
			"clients: {}\n",
			[]string{},
			[]string{},
			0, none, none,
			[]string{"nothing is granted: the registry has no grants for w"},
		},
		"limited": {
			grantW + "}}\n",
			[]string{"x"},
			[]string{"d"},
			7, none, none,
			[]string{"intent pay is not granted", "domain * is not granted", "domain money is not granted"},
		},
		"another case": {
			"clients: {}\ngrants: {w: {intents: [X, Pay], domains: [d]}}\n",
			[]string{},
			[]string{"d"},
			0, none, none,
			[]string{
				"intent pay is not granted; the grant contains Pay", "intent x is not granted; the grant contains X",
				"domain * is not granted", "domain money is not granted",
			},
		},
		"any domain": {
			"clients: {}\ngrants: {w: {intents: [x, pay], domains: ['*'], accepts_data_classes: [email], restore: all}}\n",
			[]string{"pay", "x"},
			[]string{"d", "*", "money"},
			0, email, all, nil,
		},
		"all kinds": {
			"clients: {}\ngrants: {w: {intents: [x, pay], domains: ['*'], accepts_data_classes: all}}\n",
			[]string{"pay", "x"},
			[]string{"d", "*", "money"},
			0, nil, none, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRegisteredSnapshot(t, tc.file, &claim)
			e := s.Entry("w")
			got := []any{e.Match.Intent, e.Match.Domains, e.Priority, e.AcceptsDataClasses, e.Restore, s.Fleet.Refused["w"]}
			want := []any{tc.intents, tc.domains, tc.priority, tc.accepted, tc.restore, tc.refused}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
			if len(e.Requires.Scopes) > 0 != (tc.priority == 7) {
				t.Errorf("got requires %+v, want those of the grant", e.Requires)
			}
			for intent := range e.Examples {
				if !cmp.Equal(s.Catalogue.Intents, tc.intents) || len(e.Examples) != len(tc.intents) {
					t.Errorf("got examples of %s among the intents %q, want those of granted intents only", intent, s.Catalogue.Intents)
				}
			}
		})
	}
}

// No declaration of an agent extends its entry beyond the grant.
func TestSnapshot_RegisteredAgentsStayWithinGrant(t *testing.T) {
	names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"x", "y", "z", "pay"}), rapid.ID[string])
	domains := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"d", "e", "*"}), rapid.ID[string])
	classes := rapid.SampledFrom([]contract.DataClasses{nil, {"all"}, {"none"}, {"email"}, {"email", "phone"}})
	accepts := func(d contract.DataClasses, class string, absent bool) bool {
		for _, c := range d {
			if c == class || c == "all" {
				return true
			}
		}
		return d == nil && absent
	}
	rapid.Check(t, func(t *rapid.T) {
		grant := contract.Grant{
			Intents: names.Draw(t, "granted intents"), Domains: domains.Draw(t, "granted domains"),
			AcceptsDataClasses: classes.Draw(t, "granted classes"), Restore: classes.Draw(t, "granted restore"),
		}
		r := contract.Registration{
			Match:              contract.Match{Intent: names.Draw(t, "intents"), Domains: domains.Draw(t, "domains")},
			AcceptsDataClasses: classes.Draw(t, "classes"),
		}
		s, err := NewSnapshot(&Definition{
			Agents: []*contract.RegistryEntry{r.Entry("w")}, Grants: map[string]contract.Grant{"w": grant},
			Routing: DefaultRouting(), Fallback: DefaultFallback(),
		})
		if err != nil {
			t.Fatal(err)
		}
		e := s.Entry("w")
		for _, intent := range e.Match.Intent {
			if !strings.Contains(strings.Join(grant.Intents, " "), intent) {
				t.Fatalf("got the intent %s, want only granted ones", intent)
			}
		}
		for _, domain := range e.Match.Domains {
			if !grant.GrantsDomain(domain) {
				t.Fatalf("got the domain %s, want only granted ones", domain)
			}
		}
		for _, class := range []string{"email", "phone", "iban"} {
			if accepts(e.AcceptsDataClasses, class, true) && !accepts(grant.AcceptsDataClasses, class, false) {
				t.Fatalf("got accepted class %s, which is not granted", class)
			}
			if accepts(e.Restore, class, true) && !accepts(grant.Restore, class, false) {
				t.Fatalf("got restored class %s, which is not granted", class)
			}
		}
	})
}

// The version of the catalogue changes only if a registration adds labels or examples.
func TestSnapshot_LearnsNewLabelsAndExamplesOnly(t *testing.T) {
	const file = "clients: {a: {match: {intent: [x], domains: [d]}, examples: {x: [hello]}}}\n" +
		"grants: {w: {intents: [x, y], domains: [d, e]}}\n"
	alone := newRegisteredSnapshot(t, file, nil)
	members := map[string]string{"": "alone"}
	for name, tc := range map[string]struct {
		registration contract.Registration
		learned      bool
	}{
		"same labels":      {contract.Registration{Match: contract.Match{Intent: []string{"x"}, Domains: []string{"d"}}}, false},
		"with description": {contract.Registration{Description: "X", Match: contract.Match{Intent: []string{"x"}, Domains: []string{"d"}}}, false},
		"same example": {contract.Registration{
			Match: contract.Match{Intent: []string{"x"}, Domains: []string{"d"}}, Examples: map[string][]string{"x": {"hello"}},
		}, false},
		"new intent":  {contract.Registration{Match: contract.Match{Intent: []string{"y"}, Domains: []string{"d"}}}, true},
		"new domain":  {contract.Registration{Match: contract.Match{Intent: []string{"x"}, Domains: []string{"e"}}}, true},
		"new example": {contract.Registration{Match: contract.Match{Intent: []string{"x"}}, Examples: map[string][]string{"x": {"hi"}}}, true},
		"not granted": {contract.Registration{Match: contract.Match{Intent: []string{"z"}, Domains: []string{"f"}}}, false},
	} {
		s := newRegisteredSnapshot(t, file, &tc.registration)
		if changed := s.Catalogue.Version != alone.Catalogue.Version; changed != tc.learned {
			t.Errorf("%s: got version changed %v, want %v", name, changed, tc.learned)
		}
		if got := len(s.Catalogue.Learned); (got != len(alone.Catalogue.Learned)) != tc.learned {
			t.Errorf("%s: got examples of %d agents", name, got)
		}
		if s.Fleet.Revision == alone.Fleet.Revision {
			t.Errorf("%s: got the revision of the fleet without the agent, want another", name)
		}
		if before, known := members[s.Catalogue.Members]; known {
			t.Errorf("%s: got the members of %s, want others", name, before)
		}
		members[s.Catalogue.Members] = name
	}
}

func TestSnapshot_WarnsOfGrantsWithoutEffect(t *testing.T) {
	s := newRegisteredSnapshot(t, "clients: {a: {match: {intent: [x]}}}\ngrants: {a: {intents: [x]}, w: {intents: [x]}}\n", nil)
	want := []string{"grants.a has no effect: a is declared under clients, which has precedence"}
	if diff := cmp.Diff(want, s.Fleet.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
