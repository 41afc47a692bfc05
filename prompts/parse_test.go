package prompts_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/prompts"
)

// parsed is a parsed prompt: the values in order, and the text with a slot for each.
type parsed struct {
	structure string
	values    []string
}

const slot = "§"

// parse splits a rendered text like a JSON tokenizer: a double quote starts a
// value, and the next unescaped one ends it.
func parse(t testing.TB, text string) parsed {
	t.Helper()
	var p parsed
	var b strings.Builder
	for {
		open := strings.IndexByte(text, '"')
		if open < 0 {
			b.WriteString(text)
			p.structure = b.String()
			return p
		}
		b.WriteString(text[:open] + slot)
		text = text[open:]
		end := 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			t.Fatalf("got an unclosed value in %q", text)
		}
		var value string
		if err := json.Unmarshal([]byte(text[:end+1]), &value); err != nil {
			t.Fatalf("the value %q is not a JSON string: %v", text[:end+1], err)
		}
		p.values = append(p.values, value)
		text = text[end+1:]
	}
}

// checkTame fails if a rendered text contains invisible characters or, inside quotes, delimiters of
// the template.
func checkDelimiters(t testing.TB, text prompts.Messages) {
	t.Helper()
	for _, r := range text.User + text.System {
		if r != '\n' && prompts.Hidden(r) {
			t.Errorf("got %U in the rendered text, want it escaped", r)
		}
	}
	for line := range strings.Lines(text.User) {
		if _, quoted, ok := strings.Cut(line, `"`); ok && strings.ContainsAny(quoted, "<>&") {
			t.Errorf("got a delimiter of the template in a quoted line: %q", line)
		}
	}
}
