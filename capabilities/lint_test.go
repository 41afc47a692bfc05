package capabilities

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

// With -update the expected findings under testdata/lint are rewritten.
var update = flag.Bool("update", false, "rewrite the golden files")

// Each case contains a registry and the findings of Lint, one on each line.
func TestLint(t *testing.T) {
	cases, err := filepath.Glob("testdata/lint/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("got %d cases (%v), want some", len(cases), err)
	}
	covered, run := map[string]bool{}, 0
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			run++
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) != 2 || archive.Files[0].Name != "registry.yaml" || archive.Files[1].Name != "findings" {
				t.Fatalf("%s: got other sections, want registry.yaml and findings", path)
			}
			s, err := Parse("registry.yaml", archive.Files[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, f := range Lint(s) {
				covered[f.Rule] = true
				fmt.Fprintf(&got, "%s %s [%s] %s\n", f.Severity, f.Rule, strings.Join(f.Agents, " "), f.Message)
			}
			if *update {
				archive.Files[1].Data = []byte(got.String())
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got.String()); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	for _, r := range lintRules() {
		if run == len(cases) && !covered[r.name] { // a -run filter may exclude some
			t.Errorf("rule %s: got no case, want one", r.name)
		}
	}
}

func TestLint_SourceRegistry(t *testing.T) {
	var got []string
	for _, f := range Lint(parseFile(t, "source.yaml")) {
		got = append(got, f.Severity+" "+f.Rule+" "+strings.Join(f.Agents, " "))
	}
	want := []string{
		"warning endpoint-missing billing_agent",
		"warning endpoint-missing quality_agent",
		"warning endpoint-missing rag_agent",
		"info intent-without-example billing_agent quality_agent rag_agent",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// beats computes its result by counting. The test compares it with trying every request.
func TestBeats_EqualsExhaustiveSearch(t *testing.T) {
	pool := []string{"a", "b", "c", "d", contract.AnyDomain}
	asked := []string{"a", "b", "c", "d", contract.Unknown, "elsewhere"}
	declared := func(t *rapid.T, name string) *contract.RegistryEntry {
		domains := rapid.SliceOfDistinct(rapid.SampledFrom(pool), rapid.ID[string]).Draw(t, name)
		return &contract.RegistryEntry{ID: name, Match: contract.Match{Domains: domains}}
	}
	matched := func(agent *contract.RegistryEntry, request []string) int {
		n, other := 0, false
		for _, d := range request {
			if slices.Contains(agent.Match.Domains, d) {
				n++
			} else {
				other = true
			}
		}
		if other && slices.Contains(agent.Match.Domains, contract.AnyDomain) {
			n++
		}
		return n
	}
	var requests [][]string
	for i := range asked {
		requests = append(requests, asked[i:i+1])
		for j := range i {
			requests = append(requests, []string{asked[i], asked[j]})
			for k := range j {
				requests = append(requests, []string{asked[i], asked[j], asked[k]})
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := declared(t, "first"), declared(t, "second")
		l := linter{threshold: rapid.IntRange(0, 110).Draw(t, "threshold"), domainSets: map[string]map[string]bool{}}
		want := slices.ContainsFunc(requests, func(r []string) bool {
			violated, clean := scoreOf(matched(a, r))-scoreViolation, scoreOf(matched(b, r))
			return clean >= l.threshold && violated >= l.threshold && violated > clean
		})
		if got := l.canOutscore(a, b); got != want {
			t.Fatalf("threshold %d: got beats(%v, %v) = %v, want %v", l.threshold, a.Match.Domains, b.Match.Domains, got, want)
		}
	})
}

// Lint ends soon even for registries that are expensive to compare, and each finding names only a
// few agents.
func TestLint_IsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("clients:\n")
	for i := range 1500 {
		fmt.Fprintf(&b, "  a%d: {match: {intent: [x, y], domains: [d, e, f%d]}, constraints: {max_tokens: 1}, keywords: [k], examples: {x: [same]}}\n", i, i)
	}
	s, err := Parse("f.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	findings := Lint(s)
	for _, f := range findings {
		if len(f.Agents) > maxNamedAgents || len(f.Message) > 1000 {
			t.Fatalf("got a finding that names %d agents in %d bytes: %.200s", len(f.Agents), len(f.Message), f.Message)
		}
	}
	if !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Message, "too many agents to compare") }) {
		t.Error("got no finding about the limit of the comparison, want one")
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"Review  my\tPR!":         "review my pr",
		"¿Revisa mi código?":      "revisa mi código",
		`"Quoted", (text).`:       "quoted text",
		"C++ and C#":              "c++ and c#",
		"...":                     "",
		"コードを見て。":                 "コードを見て。",
		"what's - really - new ?": "what's - really - new",
	} {
		if got := normalizeUtterance(in); got != want {
			t.Errorf("plain(%q): got %q, want %q", in, got, want)
		}
	}
}
