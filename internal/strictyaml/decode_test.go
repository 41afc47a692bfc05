package strictyaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode_SupportsAllTypes(t *testing.T) {
	tests := []struct {
		name, file string
		want       settings
	}{
		{"scalars", "version: 1\nname: x\non: true\nratio: 0.65\ncount: 255\nplain: y\n", settings{
			Version: 1, Name: "x", On: true, Ratio: 0.65, Count: 255, Plain: "y",
		}},
		{"quotes and blocks", "name: \"a\\tb\"\nplain: |\n  two\n  lines\n", settings{Name: "a\tb", Plain: "two\nlines\n"}},
		{"words that other readers take for something else stay text", "words: [yes, no, on, y, '1', \"null\", 1e, 0b]\n", settings{
			Words: words{"yes", "no", "on", "y", "1", "null", "1e", "0b"},
		}},
		{"booleans in any case", "on: TRUE\n", settings{On: true}},
		{"numbers", "version: -3\nratio: 1\nodd: {a: .5, b: 1e2, c: -0.25}\n", settings{
			Version: -3, Ratio: 1, Odd: map[string]float32{"a": .5, "b": 100, "c": -.25},
		}},
		{"word instead of a list", "words: all\n", settings{Words: words{"all"}}},
		{"flow and block", "clients: {a: {max_tokens: 1}, b: {intents: [x]}}\nnested:\n- max_tokens: 2\n- domains:\n  - y\n", settings{
			Clients: map[string]limits{"a": {MaxTokens: 1}, "b": {Intents: []string{"x"}}},
			Nested:  []limits{{MaxTokens: 2}, {Domains: []string{"y"}}},
		}},
		{"empty collections", "clients: {}\nwords: []\nlimits: {}\n", settings{Clients: map[string]limits{}, Words: words{}}},
		{"null into a pointer", "maybe: ~\nnext:\n", settings{}},
		{"pointers", "maybe: 0\nnext: {version: 2}\n", settings{Maybe: new(0.0), Next: &settings{Version: 2}}},
		{"byte order mark, carriage returns, end marker", "\ufeff---\r\nversion: 1\r\nname: é\r\n...\r\n", settings{Version: 1, Name: "é"}},
		{"comments", "# a: b\nversion: 1 # c\n\n# %YAML is only a comment here\n", settings{Version: 1}},
		{"percent sign inside the document", "name: |\n  a\n\n  %b\n", settings{Name: "a\n\n%b\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got settings
			if err := Decode("f.yaml", []byte(tt.file), &got, ScalarOrList[words]()); err != nil {
				t.Fatalf("Decode: got error %v, want none", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Decode (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecode_KeepsDefaults(t *testing.T) {
	got := settings{Version: 7, Ratio: 0.5, Limits: limits{MaxTokens: 9, Intents: []string{"a"}}}
	if err := Decode("f.yaml", []byte("ratio: 0\nlimits: {intents: []}\n"), &got); err != nil {
		t.Fatal(err)
	}
	want := settings{Version: 7, Limits: limits{MaxTokens: 9, Intents: []string{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode over defaults (-want +got):\n%s", diff)
	}
}

func TestDecode_RejectsWrongTypes(t *testing.T) {
	const empty = "there is no value here; write "
	tests := []struct {
		name, file string
		want       []string
	}{
		{"number for text", "name: 1\n", []string{`1:7: must be text, got the number 1; quote it: "1"`}},
		{"number in a list of texts", "limits:\n  intents: [a, 1]\n", []string{`2:16: must be text, got the number 1; quote it: "1"`}},
		{"boolean for text", "name: true\n", []string{`1:7: must be text, got the boolean true; quote it: "true"`}},
		{"date for text", "name: 2024-01-01\n", []string{`1:7: must be text, got the date 2024-01-01; quote it: "2024-01-01"`}},
		{"list for text", "name: [a]\n", []string{`1:7: must be text, got a list`}},
		{"yes for a boolean", "on: yes\n", []string{`1:5: must be true or false, got the text "yes"`}},
		{"quoted boolean", "on: 'true'\n", []string{`1:5: must be true or false, got the text "true"`}},
		{"text for a list", "limits: {intents: a}\n", []string{`1:19: must be a list, got the text "a"; write [a]`}},
		{"several words for a list", "limits:\n  intents: a b, c\n", []string{`2:12: must be a list, got the text "a b, c"; write [a b, c]`}},
		{"text with other characters for a list", "limits:\n  intents: is it?\n", []string{`2:12: must be a list, got the text "is it?"; write ["is it?"]`}},
		{"number for a list", "limits: {intents: 1}\n", []string{`1:19: must be a list, got the number 1`}},
		{"mapping for a list", "limits: {intents: {a: b}}\n", []string{`1:19: must be a list, got a mapping`}},
		{"text for a mapping", "limits: a\n", []string{`1:9: must be a mapping (key: value), got the text "a"; known here: max_tokens, intents, domains`}},
		{"list for a mapping of mappings", "clients:\n- a\n", []string{`2:1: must be a mapping (key: value), got a list; write the name of each entry as its key`}},
		{"list for a mapping of lists", "lists: [a]\n", []string{`1:8: must be a mapping of lists (key: [value, …]), got a list`}},
		{"list as the file", "- a\n", []string{`1:1: must be a mapping (key: value), got a list`}},
		{"word as the file", "hello\n", []string{`1:1: must be a mapping (key: value), got the text "hello"`}},

		{"quoted number", "version: '1'\n", []string{`1:10: must be a whole number, got the text "1"; remove the quotes`}},
		{"octal", "version: 010\n", []string{`1:10: must be a whole number in decimal, got the number 010`}},
		{"new octal", "version: 0o10\n", []string{`1:10: must be a whole number in decimal, got the number 0o10`}},
		{"hexadecimal", "version: 0x10\n", []string{`1:10: must be a whole number in decimal, got the number 0x10`}},
		{"underscores", "version: 1_000\n", []string{`1:10: must be a whole number in decimal, got the number 1_000`}},
		{"fraction", "version: 1.5\n", []string{`1:10: must be a whole number in decimal, got the number 1.5`}},
		{"plus sign", "version: +1\n", []string{`1:10: must be a whole number in decimal, got the number +1`}},
		{"sexagesimal", "version: 1:30\n", []string{`1:10: must be a whole number in decimal, got the text "1:30"`}},
		{"integer out of range", "version: 99999999999999999999\n", []string{`1:10: 99999999999999999999 is out of range`}},
		{"out of the type's range", "count: 256\n", []string{`1:8: 256 is out of range`}},
		{"negative", "count: -1\n", []string{`1:8: must be a whole number from 0 up in decimal, got the number -1`}},
		{"float out of range", "ratio: 1e400\n", []string{`1:8: 1e400 is out of range`}},
		{"infinity", "ratio: .inf\n", []string{`1:8: must be a number in decimal, got the number .inf`}},
		{"not a number", "ratio: .nan\n", []string{`1:8: must be a number in decimal, got the number .nan`}},
		{"infinity by another name", "ratio: Infinity\n", []string{`1:8: must be a number in decimal, got the text "Infinity"`}},
		{"hexadecimal float", "ratio: 0x1p-2\n", []string{`1:8: must be a number in decimal, got the text "0x1p-2"`}},
		{"number in a block", "version: |\n  1\n", []string{"1:10: must be a whole number in decimal, got the text \"1\\n\""}},

		{"null instead of text", "name:\n", []string{"1:6: " + empty + "text or remove the key"}},
		{"null instead of a mapping of lists", "lists:\n", []string{"1:7: " + empty + "a mapping of lists (key: [value, …]) or remove the key"}},
		{"null instead of a mapping", "limits:\n  # max_tokens: 1\nversion: 1\n", []string{"1:8: " + empty + "a mapping (key: value) or remove the key"}},
		{"null in a list", "words: [a, null, ~]\n", []string{"1:12: " + empty + "text or remove the key", "1:18: " + empty + "text or remove the key"}},
		{"null in a mapping", "clients: {a: null}\n", []string{"1:14: " + empty + "a mapping (key: value) or remove the key"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkErrors(t, Decode("f.yaml", []byte(tt.file), new(settings)), tt.want...)
		})
	}
}

func TestDecode_RejectsUnknownKeys(t *testing.T) {
	known := "version, name, on, ratio, maybe, count, limits, clients, words, lists, nested, plain, next, odd"
	tests := []struct {
		name, file, want string
	}{
		{"plural", "limit: {}\n", `1:1: unknown key "limit"; did you mean "limits"?`},
		{"other case", "Version: 1\n", `1:1: unknown key "Version"; did you mean "version"?`},
		{"all capitals", "CLIENTS: {}\n", `1:1: unknown key "CLIENTS"; did you mean "clients"?`},
		{"swapped letters", "limits:\n  max_tokesn: 1\n", `2:3: unknown key "max_tokesn"; did you mean "max_tokens"?`},
		{"hyphen", "limits: {max-tokens: 1}\n", `1:10: unknown key "max-tokens"; did you mean "max_tokens"?`},
		{"key of a mapping further in", "max_tokens: 1\n", `1:1: unknown key "max_tokens"; it belongs below "limits"`},
		{"no resemblance", "frobnicate: 1\n", `1:1: unknown key "frobnicate"; known here: ` + known},
		{"key of one letter", "xx: 1\n", `1:1: unknown key "xx"; known here: ` + known},
		{"field that is not decoded", "hidden: 1\n", `1:1: unknown key "hidden"; known here: ` + known},
		{"in a list of mappings", "nested:\n  - domains: []\n  - domain: []\n", `3:5: unknown key "domain"; did you mean "domains"?`},
		{"in a mapping of mappings", "clients:\n  a:\n    intent: []\n", `3:5: unknown key "intent"; did you mean "intents"?`},
		{"very long", strings.Repeat("k", 200) + ": 1\n", `1:1: unknown key "` + strings.Repeat("k", 64) + `…"; known here: ` + known},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkErrors(t, Decode("f.yaml", []byte(tt.file), new(settings)), tt.want)
		})
	}
}

// All errors of a file are reported at once, in the order of the file, and valid values are still
// decoded.
func TestDecode_ContinuesAfterError(t *testing.T) {
	const file = `nam: x
version: one
limits: {max_tokens: 5, intents: [1]}
name: &n y
version: 2
clients:
  a: {max_token: 1, domains: [d]}
  b: *n
`
	var got settings
	checkErrors(t, Decode("f.yaml", []byte(file), &got),
		`1:1: unknown key "nam"; did you mean "name"?`,
		`2:10: must be a whole number in decimal, got the text "one"`,
		`3:35: must be text, got the number 1; quote it: "1"`,
		`4:7: anchors (&n) are not supported; remove it`,
		`5:1: duplicate key "version"; it is also on line 2`,
		`7:7: unknown key "max_token"; did you mean "max_tokens"?`,
		`8:6: aliases (*n) are not supported; write the value out`,
	)
	want := settings{
		Limits:  limits{MaxTokens: 5, Intents: []string{""}},
		Clients: map[string]limits{"a": {Domains: []string{"d"}}, "b": {}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded values (-want +got):\n%s", diff)
	}
}

func TestErrors_AreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "wrong%d: 1\n", i)
	}
	err := Decode("f.yaml", []byte(b.String()), new(limits))
	list, ok := err.(Errors)
	if !ok || len(list) != MaxErrors+1 {
		t.Fatalf("got %T with %d entries, want %d", err, len(list), MaxErrors+1)
	}
	if got, want := list[0].Line, 1; got != want {
		t.Errorf("first mistake: got line %d, want %d", got, want)
	}
	if got, want := list[MaxErrors].Error(), "f.yaml: … and 4980 more"; got != want {
		t.Errorf("last entry: got %q, want %q", got, want)
	}
	if got, want := strings.Count(err.Error(), "\n"), MaxErrors; got != want {
		t.Errorf("got %d line breaks in the text, want %d", got, want)
	}
}

func TestDecode_RejectsInvalidTargets(t *testing.T) {
	for name, v := range map[string]any{"a value": settings{}, "nil": nil, "a nil pointer": (*settings)(nil)} {
		if err := Decode("f.yaml", []byte("version: 1\n"), v); err == nil || !strings.Contains(err.Error(), "not a pointer") {
			t.Errorf("Decode into %s: got error %v, want one about the target", name, err)
		}
	}
	checkErrors(t, Decode("f.yaml", []byte("a: 1\n"), new(map[string]chan int)), "1:4: cannot be decoded into a Go chan int")
	checkErrors(t, Decode("f.yaml", []byte("a: 1\n"), new(map[int]string)), "1:1: cannot be decoded into a Go map[int]string")
	checkErrors(t, Decode("f.yaml", []byte("a: [1]\n"), new(map[string]any)), "1:4: must be another value, got a list")
}

func TestEditDistance_CountsEdits(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "abc", 0},
		{"domain", "domains", 1},
		{"tokesn", "tokens", 1},
		{"ab", "ba", 1},
		{"kitten", "sitting", 3},
		{"é", "e", 1},
		{"intent", "domains", 6},
	} {
		if got := editDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := editDistance(tt.b, tt.a); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestDecode_AcceptsSynonyms(t *testing.T) {
	var got settings
	d, err := Parse("f.yaml", []byte("version: 1\nagents:\n  a: {max_tokens: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := settings{Version: 1, Clients: map[string]limits{"a": {MaxTokens: 1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode (-want +got):\n%s", diff)
	}
	d.Errorf(At("clients", "a", "max_tokens"), "is small")
	d.KeyErrorf(At("agents", "a"), "is short")
	checkErrors(t, d.Err(), "3:3: is short", "3:19: is small")
}

func TestDecode_RejectsKeyWithSynonym(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"synonym last", "clients: {a: {}}\nagents: {b: {}}\n", `2:1: "agents" is another name for "clients", which is at 1:1; keep one of them`},
		{"synonym first", "agents: {a: {}}\non: true\nclients: {b: {}}\n", `3:1: "clients" is another name for "agents", which is at 1:1; keep one of them`},
		{"misspelt synonym", "agent: {}\n", `1:1: unknown key "agent"; did you mean "agents"?`},
		{"synonym twice", "agents: {}\nagents: {}\n", `2:1: duplicate key "agents"; it is also on line 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got settings
			checkErrors(t, Decode("f.yaml", []byte(tt.file), &got), tt.want)
		})
	}
}
