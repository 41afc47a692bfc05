package capabilities

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
	"github.com/caprouter/caprouter/internal/testkit"
)

// sharedJSON decodes third-party test data.
func sharedJSON(t *testing.T, v any, elem ...string) {
	t.Helper()
	data, err := os.ReadFile(testkit.Shared(t, elem...))
	must(t, err)
	must(t, strictjson.Unmarshal(data, v))
}

// withID returns a registry whose only agent has this id.
func withID(t *testing.T, section, id, entry string) []byte {
	t.Helper()
	quoted, err := strictjson.Marshal(id) // JSON strings are YAML strings
	must(t, err)
	return []byte("clients: {}\n" + section + ":\n  " + string(quoted) + ": " + entry + "\n")
}

func TestParse_RejectsInvalidAgentIDs(t *testing.T) {
	// Names that other systems reserve. The rule accepts them, because no id becomes a file name or
	// a member of an object in a script.
	elsewhere := []string{"constructor", "null", "true", "con", "nul", "aux"}
	var ids []string
	sharedJSON(t, &ids, "corpora", "own-lists", "bad_agent_ids.json")
	for _, id := range ids {
		if slices.Contains(elsewhere, id) {
			continue
		}
		if contract.ValidAgentID(id) {
			t.Errorf("ValidAgentID(%q): got true, want false", id)
		}
		_, err := Parse("f.yaml", withID(t, "grants", id, "{intents: [x]}"))
		if list, ok := errors.AsType[strictyaml.Errors](err); !ok || list[0].Line != 3 {
			t.Errorf("grant for %q: got error %v, want one on line 3", id, err)
		}
	}
	if len(ids) < 50 {
		t.Errorf("got %d ids, want the whole list", len(ids))
	}
}

// Unusual strings as names, examples and addresses are either rejected with a position, or stored
// unchanged.
func TestParse_HandlesUnusualStrings(t *testing.T) {
	var naughty []string
	sharedJSON(t, &naughty, "corpora", "naughty-strings", "blns.json")
	accepted := 0
	for _, s := range naughty {
		entry := contract.RegistryEntry{
			Match:    contract.Match{Intent: []string{"x"}, Domains: []string{s}},
			Examples: map[string][]string{"x": {s}},
			Keywords: []string{s},
		}
		data, err := strictjson.Marshal(map[string]any{"clients": map[string]any{"a": entry}})
		must(t, err)
		snapshot, err := Parse("f.yaml", data)
		if err != nil {
			if list, ok := errors.AsType[strictyaml.Errors](err); !ok || list[0].Line < 1 {
				t.Errorf("%q: got error %v, want one with a position", s, err)
			}
			continue
		}
		accepted++
		if got := snapshot.Catalogue.Agents[0]; got.Keywords[0] != s || got.Examples["x"][0] != s || got.Match.Domains[0] != s {
			t.Errorf("got %q, %q and %q, want %q", got.Keywords[0], got.Examples["x"][0], got.Match.Domains[0], s)
		}
		urlProblem(s)
		Lint(snapshot)
	}
	if accepted == 0 || accepted == len(naughty) {
		t.Errorf("got %d of %d accepted, want some and not all", accepted, len(naughty))
	}
}

// Expensive input, as a client may send it for validation, is rejected with a short list of errors.
func TestParse_LimitsCostOfHostileInput(t *testing.T) {
	testkit.SkipWithRace(t)
	const size = 1 << 18
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, file := range map[string]string{
		"lists":               "clients: [" + repeat("[],") + "]",
		"agents of nothing":   "clients: {" + numbered("a%d: {}, ") + "}",
		"unknown keys":        numbered("a%d: 1\n"),
		"one key, many times": "{" + repeat("a,") + "}",
		"intents":             "clients: {a: {match: {intent: [" + numbered("a%d, ") + "]}, bad: 1}}",
		"one intent":          "clients: {a: {match: {intent: [" + repeat("a,") + "]}}}",
		"foreign examples":    "clients: {a: {match: {intent: [x]}, examples: {" + numbered("e%d: [u], ") + "}}}",
		"anchors":             "a: [" + numbered("&a%d x, ") + "]",
		"aliases":             "a: &a x\nb: [" + repeat("*a, ") + "]",
		"open lists":          repeat("["),
		"open mappings":       repeat("{a: "),
		"dashes":              repeat("- "),
		"question marks":      repeat("? "),
		"documents":           repeat("---\n"),
		"a long key":          repeat("k") + ": 1",
		"a long alias":        "a: *" + repeat("x"),
		"a long tag":          "a: !" + repeat("x") + " y",
		"a long id":           "clients: {" + repeat("a") + ": {}}",
		"comments":            "clients:\n" + repeat("  #x\n  a: 1\n"),
		"folded lines":        "a: >\n" + repeat(" x\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(file))
			list, ok := errors.AsType[strictyaml.Errors](err)
			if !ok || len(list) > strictyaml.MaxErrors+1 || len(err.Error()) > 8<<10 {
				t.Errorf("got %d errors in %d bytes (%.200v), want a short list", len(list), len(fmt.Sprint(err)), err)
			}
		})
	}
}
