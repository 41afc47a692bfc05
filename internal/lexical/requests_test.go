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
		{"label after a comma", "pay the invoice, book_room", []string{"pay the invoice, book_room"}},
		{"nothing", "  ", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, m.NewText(tt.text).SplitRequests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSplitRequests_KeepsText checks that the requests are parts of the text, in order and not
// empty.
func TestSplitRequests_KeepsText(t *testing.T) {
	m := Train(trainedCorpus())
	piece := rapid.SampledFrom([]string{"pay the invoice", ", ", " and ", "，", "book a room", "; ", "`a, b`", `{"a, b": "c, d"}`, `{"a": "b, `, "<!-- a, b -->", "<!--", "\n- ", "天气", "\xff", ",", " ", "、"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 90).Draw(t, "text"), "")
		rest := text
		for _, part := range m.NewText(text).SplitRequests() {
			_, after, found := strings.Cut(rest, part)
			if !found || strings.TrimSpace(part) == "" {
				t.Fatalf("%q: got %q, want a part of %q", text, part, rest)
			}
			rest = after
		}
	})
}

// TestText_Classify checks that a part of a text has the same prediction as the part alone, and
// that a text with one clause is one request.
func TestText_Classify(t *testing.T) {
	m := Train(trainedCorpus())
	piece := rapid.SampledFrom([]string{
		"pay the invoice", "book a room", "C#", "c++", "1. ", " ", ", ", "，", " and ", "; ", ".", "!", "\n", "\n- ", "\t", "`a, b`", "```py\n", "```",
		`{"a": "b`, `{"a`, `"}`, "<!--", "-->", "[EMAIL_1", "]", "天气", "\xff", "pay_invoice", "payInvoice", "_",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
		whole := m.NewText(text)
		parts := append(whole.SplitRequests(), whole.Clauses()...)
		for _, part := range append(parts, parts...) {
			if diff := cmp.Diff(m.Classify(part), *whole.Classify(part)); diff != "" {
				t.Fatalf("%q in %q (-alone +in the text):\n%s", part, text, diff)
			}
		}
		if whole.IsOneClause() {
			if diff := cmp.Diff(whole.Clauses(), whole.SplitRequests()); diff != "" {
				t.Fatalf("requests of the clause %q (-want +got):\n%s", text, diff)
			}
		}
	})
}

func TestRemoveClauses(t *testing.T) {
	m := Train(trainedCorpus())
	const text = "pay the invoice, book a room and reset my password. Order lunch"
	tests := []struct {
		segment string
		remove  []string
		want    []string
	}{
		{text, nil, []string{text}},
		{text, []string{"Order lunch"}, []string{"pay the invoice, book a room and reset my password"}},
		{text, []string{"reset my password"}, []string{"pay the invoice, book a room", "Order lunch"}},
		{text, []string{"pay the invoice, book a room"}, []string{"reset my password. Order lunch"}},
		{"book a room and reset my password", []string{"reset my password"}, []string{"book a room"}}, // starts inside a clause
		{"book a room and reset my password", []string{"pay the invoice, book a room"}, []string{"book a room and reset my password"}},
		{"Order lunch", []string{"Order lunch"}, nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, m.NewText(text).RemoveClauses(tt.segment, tt.remove)); diff != "" {
			t.Errorf("%q without %q (-want +got):\n%s", tt.segment, tt.remove, diff)
		}
	}
}
