package capabilities

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// FuzzParse checks that no input panics, that each error has a position, and that the invariants of
// a Snapshot hold for accepted input.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/source.yaml", "testdata/full.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{
		base, registryOf("a"), brokenRegistry, "clients: {}\n", "clients: {}\nfallback: {policy: C}\n",
		"clients: {}\ngrants: {a: {intents: [x], domains: ['*']}}\n",
		"clients:\n  a: {match: {intent: [x], domains: ['*', d, e]}, constraints: {max_tokens: 1}, restore: [all]}\n  b: {match: {intent: [x]}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f.yaml", data)
		if err != nil {
			list, ok := errors.AsType[strictyaml.Errors](err)
			if !ok || len(list) == 0 || list[0].Line < 1 {
				t.Fatalf("got error %T %v, want strictyaml.Errors with a position", err, err)
			}
			return
		}
		again, err := Parse("f.yaml", data)
		if err != nil {
			t.Fatalf("second parse: got error %v, want none", err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatalf("second parse (-first +second):\n%s", diff)
		}
		for i, a := range s.Catalogue.Agents {
			if !contract.ValidAgentID(a.ID) || s.Catalogue.Agent(a.ID) != a || s.Fleet.Agent(a.ID) == nil || len(a.Match.Intent) == 0 {
				t.Fatalf("agent %d is invalid: %+v", i, a)
			}
		}
		if diff := cmp.Diff(Lint(s), Lint(again)); diff != "" {
			t.Fatalf("second lint (-first +second):\n%s", diff)
		}
	})
}

// A registry written as JSON, which is valid YAML, is parsed without loss.
func TestParse_RoundTrip(t *testing.T) {
	name := rapid.StringMatching(`[a-zA-Zéß語*#.:\-][a-zA-Z0-9éß語 _:#,\[\]{}'"-]{0,10}[a-zA-Z0-9é語_:#!]`).
		Filter(func(s string) bool { return intentProblem(s) == "" })
	names := rapid.SliceOfNDistinct(name, 1, 4, rapid.ID[string])
	kinds := rapid.SliceOfNDistinct(rapid.SampledFrom(redact.Kinds()), 1, 4, rapid.ID[string])
	text := rapid.StringN(1, 30, -1).Filter(func(s string) bool {
		return strings.TrimSpace(s) != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
	})
	entry := rapid.Custom(func(t *rapid.T) *contract.RegistryEntry {
		e := &contract.RegistryEntry{
			Match:       contract.Match{Intent: names.Draw(t, "intents"), Domains: names.Draw(t, "domains")},
			Keywords:    rapid.SliceOfN(text, 1, 3).Draw(t, "keywords"),
			Constraints: contract.Constraints{MaxTokens: rapid.IntRange(0, 100_000_000).Draw(t, "tokens")},
			Requires:    contract.Requires{Scopes: names.Draw(t, "scopes"), DataClasses: kinds.Draw(t, "data classes")},
			Endpoint:    contract.Endpoint{Protocol: "http", URL: "http://127.0.0.1:9101/", Idempotent: rapid.Bool().Draw(t, "idempotent")},
			Restore:     kinds.Draw(t, "restore"),
			Priority:    rapid.IntRange(-1_000_000, 1_000_000).Draw(t, "priority"),
		}
		e.Examples = map[string][]string{e.Match.Intent[0]: rapid.SliceOfN(text, 1, 3).Draw(t, "examples")}
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		clients := rapid.MapOf(rapid.StringMatching(`[a-z][a-z0-9_-]{0,63}`), entry).Draw(t, "clients")
		data, err := strictjson.Marshal(map[string]any{"version": 1, "clients": clients})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse("f.yaml", data)
		if err != nil {
			t.Fatalf("%s\n%v", data, err)
		}
		if len(s.Catalogue.Agents) != len(clients) {
			t.Fatalf("got %d agents, want %d", len(s.Catalogue.Agents), len(clients))
		}
		for _, got := range s.Entries() {
			want := clients[got.ID]
			want.ID = got.ID
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", got.ID, diff)
			}
		}
	})
}
