package token

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestEmbedded marks in each text the end (|) of the object or comment at its start.
func TestEmbedded(t *testing.T) {
	tests := []struct{ name, marked string }{
		{"object", `{"a":1}| behind`},
		{"over lines", "{\n  \"a\": [1, -2.5e+3, true],\n  \"b\": {\"c\": null}\n}| behind"},
		{"braces and quotes in a string", `{"a}": "}\"{"}| behind`},
		{"nested", `{"a":{"b":{}}}| }`},
		{"sloppy commas", `{"a":1,,}| behind`},
		{"cut off", `{"a":[{"b":1|`},
		{"cut off in a string", `{"a":"b|`},
		{"cut off behind a backslash", `{"a":"b\|`},
		{"string that ends with its line", "{\"a\":\"b|\nbehind"},
		{"word instead of a value", `{"a": |None, "b": 1}`},
		{"word after a value", `{"a": 1 |and more}`},
		{"prose inside", `{"a": "b" |— review it}`},
		{"a comment", "<!-- a -->| behind"},
		{"over lines with dashes", "<!--\na - b -- c\n-->| behind"},
		{"empty comment", "<!---->| behind"},
		{"second comment end", "<!-- a -->| b -->"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(tt.marked, "|", "", 1)
			m := NewEmbedded(text)
			end := m.EndAt(0)
			if got := text[:end] + "|" + text[end:]; got != tt.marked {
				t.Errorf("got %q, want %q", got, tt.marked)
			}
		})
	}
}

func TestEmbedded_None(t *testing.T) {
	for name, text := range map[string]string{
		"brace":                 "{",
		"braces in prose":       "{see below}",
		"set":                   `{"a", "b"}`,
		"empty object":          "{}",
		"template":              "{{name}}",
		"key in single quotes":  "{'a': 1}",
		"key without quotes":    "{a: 1}",
		"incomplete key":        "{\"a\n\": 1}",
		"less than":             "< b",
		"tag":                   "<b>",
		"open comment":          "<!-- a",
		"comment closed before": "<!--> a",
	} {
		m := NewEmbedded(text)
		if end := m.EndAt(0); end != 0 {
			t.Errorf("%s: got an end at %d of %q, want none", name, end, text)
		}
	}
}

// TestEmbedded_StaysInsideText checks that the end is inside the text and not before the
// start.
func TestEmbedded_StaysInsideText(t *testing.T) {
	piece := rapid.SampledFrom([]string{`{"a":`, `"`, "{", "}", "[", "]", `\`, "\n", "1", "true", "é", "\xff", "<!--", "-->", " "})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 20).Draw(t, "pieces"), "")
		m := NewEmbedded(text)
		for at := range len(text) {
			if end := m.EndAt(at); end < at || end > len(text) {
				t.Fatalf("%q at %d: got an end at %d, want it inside %d bytes", text, at, end, len(text))
			}
		}
	})
}
