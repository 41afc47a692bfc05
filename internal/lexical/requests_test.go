package lexical

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSplitRequests(t *testing.T) {
	m := Train(trainedCorpus())
	tests := []struct {
		name, text string
		want       []string
	}{
		{"one request", "please pay the invoice", []string{"please pay the invoice"}},
		{"joined", "pay the invoice and book a meeting room", []string{"pay the invoice", "book a meeting room"}},
		{"at a comma", "pay the invoice, book a meeting room and then order lunch", []string{"pay the invoice", "book a meeting room", "order lunch"}},
		{"inside a request", "order a salad with cheese and a sandwich", []string{"order a salad with cheese and a sandwich"}},
		{"Chinese comma", "明天天气怎么样，reset my password", []string{"明天天气怎么样", "reset my password"}},
		{"commas in an object", `pay the invoice {"a": 1, "book": "a room"}, order lunch`, []string{`pay the invoice {"a": 1, "book": "a room"}`, "order lunch"}},
		{"commas in a comment", "pay the invoice <!-- book a room, reset my pin -->", []string{"pay the invoice <!-- book a room, reset my pin -->"}},
		{"a label at a comma", "pay the invoice, book_room", []string{"pay the invoice, book_room"}},
		{"nothing", "  ", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, m.SplitRequests(tt.text)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSplitRequests_KeepsText checks that the requests are parts of the text,
// in order and not empty.
func TestSplitRequests_KeepsText(t *testing.T) {
	m := Train(trainedCorpus())
	piece := rapid.SampledFrom([]string{"pay the invoice", ", ", " and ", "，", "book a room", "; ", "`a, b`", `{"a, b": "c, d"}`, `{"a": "b, `, "<!-- a, b -->", "<!--", "\n- ", "天气", "\xff", ",", " ", "、"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 90).Draw(t, "text"), "")
		rest := text
		for _, part := range m.SplitRequests(text) {
			_, after, found := strings.Cut(rest, part)
			if !found || strings.TrimSpace(part) == "" {
				t.Fatalf("%q: got %q, want a part of %q", text, part, rest)
			}
			rest = after
		}
	})
}
