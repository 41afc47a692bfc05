package yamledit_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/caprouter/caprouter/internal/yamledit"
)

func TestAppend_KeepsRestOfText(t *testing.T) {
	mapping := yamledit.Item{"id: new", `input: "it's"`, "expect: { outcome: dispatch }"}
	for _, tt := range []struct {
		name, text, path string
		item             yamledit.Item
		want             string
	}{
		{"empty text", "", "cases", mapping, "cases:\n  - id: new\n    input: \"it's\"\n    expect: { outcome: dispatch }\n"},
		{"comments only", "# none yet\n", "a b", yamledit.Item{"x"}, "# none yet\na:\n  b:\n    - x\n"},
		{"key without a value", "cases: # none yet\nother: 1\n", "cases", yamledit.Item{"x"}, "cases: # none yet\n  - x\nother: 1\n"},
		{"empty list", "cases: [ ] # none yet\nother: 1\n", "cases", mapping, "cases: # none yet\n  - id: new\n    input: \"it's\"\n    expect: { outcome: dispatch }\nother: 1\n"},
		{
			"list without indent, before the comments behind it",
			"cases:\n# first\n- id: a  # note\n  input: |\n    two\n    lines\n\n# end\nother: {}\n", "cases", mapping,
			"cases:\n# first\n- id: a  # note\n  input: |\n    two\n    lines\n- id: new\n  input: \"it's\"\n  expect: { outcome: dispatch }\n\n# end\nother: {}\n",
		},
		{"empty lines between items", "a:\n  - x\n\n  - y\n", "a", yamledit.Item{"z"}, "a:\n  - x\n\n  - y\n\n  - z\n"},
		{"last list, no line break at the end", "a:\n    - x", "a", yamledit.Item{"y"}, "a:\n    - x\n    - y\n"},
		{"Windows line ends", "a:\r\n  - x\r\n", "a", yamledit.Item{"y"}, "a:\r\n  - x\r\n  - y\r\n"},
		{"end of the document", "---\na:\n  - x\n...\n", "a", yamledit.Item{"y"}, "---\na:\n  - x\n  - y\n...\n"},
		{
			"missing keys of a mapping",
			"clients:\n  one:\n    match: {}\n    # endpoint: none\n\n  two:\n    match: {}\n", "clients one examples greet",
			yamledit.Item{`"hi"`},
			"clients:\n  one:\n    match: {}\n    examples:\n      greet:\n        - \"hi\"\n    # endpoint: none\n\n  two:\n    match: {}\n",
		},
		{
			"missing key beside others, unusual name",
			"examples:\n  greet: [hi]\n", "examples yes",
			yamledit.Item{`"sure"`},
			"examples:\n  greet: [hi]\n  \"yes\":\n    - \"sure\"\n",
		},
		{"flow list", `a: ["x, ]", 'it''s', plain's] # note` + "\n", "a", yamledit.Item{`"y"`}, `a: ["x, ]", 'it''s', plain's, "y"] # note` + "\n"},
		{"flow list over several lines", "a: [\n  x, # note ]\n  y # last\n]\n", "a", yamledit.Item{"z"}, "a: [\n  x, # note ]\n  y, z # last\n]\n"},
		{"flow list that ends with a comma", "a: [x, ]\n", "a", yamledit.Item{"z"}, "a: [x, z ]\n"},
		{"flow mapping", "m: { intent: [a], ex: { a: [x] } }\n", "m ex b", yamledit.Item{"z"}, "m: { intent: [a], ex: { a: [x], b: [z] } }\n"},
		{"empty flow mapping", "m: {}\n", "m ex b", yamledit.Item{"z"}, "m: {ex: { b: [z] }}\n"},
		{"empty list in a flow mapping", "m: { b: [] }\n", "m b", yamledit.Item{"z"}, "m: { b: [z] }\n"},
		{
			"long flow list", "a: [" + strings.Repeat("x", 100) + "]\n", "a",
			yamledit.Item{`"` + strings.Repeat("y", 20) + `"`},
			"a: [" + strings.Repeat("x", 100) + ",\n    \"" + strings.Repeat("y", 20) + "\"]\n",
		},
		{"wide characters", "é: { 审查: [ü] }\n", "é 审查", yamledit.Item{"z"}, "é: { 审查: [ü, z] }\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := strings.Fields(tt.path)
			got, err := yamledit.Append([]byte(tt.text), path, tt.item)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if !yamledit.Has(got, path...) {
				t.Errorf("Has(%s): got false, want true", tt.path)
			}
		})
	}
}

func TestAppend_RejectsUnsupportedDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"not YAML":                     "a: [",
		"scalar":                       "a: x\n",
		"mapping":                      "a: { b: c }\n",
		"alias":                        "x: &x [1]\na: *x\n",
		"comment at the end of a text": "a:\n  - |\n    text\n    # text\n",
		"list at the root":             "- x\n",
	} {
		if got, err := yamledit.Append([]byte(text), []string{"a"}, yamledit.Item{"y"}); err == nil {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
	if got, err := yamledit.Append([]byte("a: [x]\n"), []string{"a"}, yamledit.Item{`"y`}); err == nil {
		t.Errorf("invalid item: got %q, want an error", got)
	}
}

func TestQuote_RoundTrips(t *testing.T) {
	for _, want := range []string{"", "plain", `"quoted" \ back`, "two\nlines\r\n\ttab", "审查 é 👩‍💻", "\x00\x7f\u0085\u00a0\u2028\ufeff", "- [a]: {b} # c"} {
		var got string
		if err := yaml.Unmarshal([]byte(yamledit.Quote(want)), &got); err != nil || got != want {
			t.Errorf("%q: got %q from %s, %v", want, got, yamledit.Quote(want), err)
		}
	}
}

// Append inserts one piece of text and removes none, except the brackets of an empty
// list.
func FuzzAppend(f *testing.F) {
	for _, text := range []string{"", "a:\n  - x\n", "a: [x, 'y']\n", "b: {}\na: [] # c\n", "a:\n- |\n  x\n# c\n", "\ufeffa: [x]\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := yamledit.Append(text, []string{"a"}, yamledit.Item{`"new"`})
		if err != nil {
			return
		}
		rest := strings.NewReplacer(" ", "", "[", "", "]", "").Replace(string(text))
		for _, r := range string(got) {
			if first, size := utf8.DecodeRuneInString(rest); first == r {
				rest = rest[size:]
			}
		}
		if rest != "" {
			t.Errorf("got %q from %q, want only an insertion", got, text)
		}
	})
}
