package lexical

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestEmbeddedContent marks in each text the end (|) of the object or comment
// at its start.
func TestEmbeddedContent(t *testing.T) {
	tests := []struct{ name, marked string }{
		{"an object", `{"a":1}| behind`},
		{"over lines", "{\n  \"a\": [1, -2.5e+3, true],\n  \"b\": {\"c\": null}\n}| behind"},
		{"braces and quotes in a string", `{"a}": "}\"{"}| behind`},
		{"nested", `{"a":{"b":{}}}| }`},
		{"sloppy commas", `{"a":1,,}| behind`},
		{"cut off", `{"a":[{"b":1|`},
		{"cut off in a string", `{"a":"b|`},
		{"cut off behind a backslash", `{"a":"b\|`},
		{"a string that stops with its line", "{\"a\":\"b|\nbehind"},
		{"a word where a value stands", `{"a": |None, "b": 1}`},
		{"a word behind a value", `{"a": 1 |and more}`},
		{"prose inside", `{"a": "b" |— review it}`},
		{"a comment", "<!-- a -->| behind"},
		{"over lines with dashes", "<!--\na - b -- c\n-->| behind"},
		{"empty comment", "<!---->| behind"},
		{"as many closings as it likes", "<!-- a -->| b -->"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(tt.marked, "|", "", 1)
			m := embeddedContent{text: text}
			end := m.endAt(0)
			if got := text[:end] + "|" + text[end:]; got != tt.marked {
				t.Errorf("got %q, want %q", got, tt.marked)
			}
		})
	}
}

func TestEmbeddedContent_None(t *testing.T) {
	for name, text := range map[string]string{
		"a brace":                 "{",
		"braces in prose":         "{see below}",
		"a set":                   `{"a", "b"}`,
		"an empty object":         "{}",
		"a template":              "{{name}}",
		"a key in single quotes":  "{'a': 1}",
		"a key without quotes":    "{a: 1}",
		"a key that is not ended": "{\"a\n\": 1}",
		"less than":               "< b",
		"a tag":                   "<b>",
		"an open comment":         "<!-- a",
		"a comment closed before": "<!--> a",
	} {
		m := embeddedContent{text: text}
		if end := m.endAt(0); end != 0 {
			t.Errorf("%s: got an end at %d of %q, want none", name, end, text)
		}
	}
}

// TestEmbeddedContent_StaysInsideText checks that the end is inside the text
// and not before the start.
func TestEmbeddedContent_StaysInsideText(t *testing.T) {
	piece := rapid.SampledFrom([]string{`{"a":`, `"`, "{", "}", "[", "]", `\`, "\n", "1", "true", "é", "\xff", "<!--", "-->", " "})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 20).Draw(t, "pieces"), "")
		m := embeddedContent{text: text}
		for at := range len(text) {
			if end := m.endAt(at); end < at || end > len(text) {
				t.Fatalf("%q at %d: got an end at %d, want it inside %d bytes", text, at, end, len(text))
			}
		}
	})
}
