package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// phoneEnd is called at ⟦ and must return ⟧, or 0.
func TestPhoneEnd(t *testing.T) {
	for _, tc := range []struct{ name, text string }{
		{"international", "⟦+14155550132⟧"},
		{"international, grouped", "⟦+44 20 7946 0958⟧ x"},
		{"too short after +", "⟦+12345"},
		{"zero after +", "⟦+0123456789"},
		{"no more than 15 digits", "⟦+1234567890123456"},
		{"area in parentheses", "⟦(415) 555-0132⟧"},
		{"parenthesis left open", "⟦(415 555-0132"},
		{"number in parentheses", "⟦(5550132)"},
		{"two blanks between groups", "⟦415  555  0132⟧"},
		{"three blanks are two things", "⟦415   555   0132"},
		{"trunk zero", "⟦0176 1234567⟧"},
		{"two zeros for a country", "⟦0049 30 1234567⟧"},
		{"three zeros", "⟦0004 30 1234567"},
		{"with an extension", "⟦415-555-0132 ext. 77⟧"},
		{"with x", "⟦415-555-0132x4587⟧"},
		{"no extension of so many digits", "⟦415-555-0132⟧ ext 1234567"},
		{"continued after a dash", "⟦415-555-0132-1"},
		{"of a sum", "⟦415-555-0132*2"},
		{"part of a number", "⟦+1 415 555 0132⟧ 7777777777"},
		{"inside of a word", "a⟦4155550132"},
		{"a price", "$⟦4155550132"},
		{"a day", "call ⟦2024-01-15"},
		{"date in reverse order", "call ⟦15.01.2024"},
		{"no day", "call ⟦15.13.2024⟧"},
		{"called", "call ⟦4155550132⟧"},
		{"named behind", "⟦4155550132⟧ mobile"},
		{"named before and denied", "order ⟦4155550132"},
		{"hinted at", "number ⟦4155550132⟧"},
		{"hinted at, too short", "number ⟦5550132"},
		{"round, of something else", "call it with ⟦1000000"},
		{"bare", "⟦4155550132"},
		{"of a list of figures", "call 1,⟦4155550132"},
		{"Chinese mobile", "⟦138 1234 5678⟧"},
		{"no Chinese mobile", "⟦128 1234 5678"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plain, start, want := marked(tc.text)
			if got := phoneEnd(plain, start); got != want {
				t.Errorf("%q: got %d, want %d", plain, got, want)
			}
		})
	}
}

func TestReadGroups(t *testing.T) {
	for _, tc := range []struct {
		text       string
		groups     string // with blanks between
		plus, area bool
	}{
		{"", "", false, false},
		{"+", "", true, false},
		{"1", "1", false, false},
		{"+1 (415) 555-0132", "1 415 555 0132", true, true},
		{"415.555/0132", "415 555 0132", false, false},
		{"415 - 555", "415", false, false},
		{"1 2 (3) 4", "1 2 3 4", false, false},
		{"(123456) 7", "", false, false},
		{"12345678 12345678", "12345678", false, false},
		{"1 2 3 4 5 6 7 8 9 0", "1 2 3 4 5 6 7 8", false, false},
	} {
		d := readGroups(tc.text+" ", 0)
		groups := make([]string, d.n)
		digits := 0
		for i := range groups {
			groups[i] = tc.text[d.groups[i].start:d.groups[i].end]
			digits += len(groups[i])
		}
		if got := strings.Join(groups, " "); got != tc.groups || d.digits != digits {
			t.Errorf("%q: got groups %q of %d digits, want %q of %d", tc.text, got, d.digits, tc.groups, digits)
		}
		if d.plus != tc.plus || d.area != tc.area {
			t.Errorf("%q: got plus %v, area %v, want %v, %v", tc.text, d.plus, d.area, tc.plus, tc.area)
		}
	}
}

// Text after a number belongs to it only as an extension.
func TestPastExtension(t *testing.T) {
	for text, want := range map[string]string{
		"x12": "x12", " ext 12": " ext 12", " ext. 12.": " ext. 12", "#1": "#1", " ramal 123456": " ramal 123456",
		"": "", " and 12": "", "x": "", "x12a": "", " ext 1234567": "", "   ext 12": "", "extra 12": "",
	} {
		if got := text[:pastExtension(text, 0)]; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Hint words are in lower case and short enough for the lookup, and are either positive or
// negative.
func TestPhoneHint_WordsAreReachable(t *testing.T) {
	for name, about := range map[string]func(string) wordHint{
		"phone": phoneHint, "card": cardHint, "version": versionHint, "secret": secretHint, "web clients": webClientHint,
	} {
		for _, word := range []string{"phone", "card", "version", "key", "curl"} {
			upper := hintBefore(strings.ToUpper(word)+" 1", len(word)+1, about)
			if diff := cmp.Diff(about(word), upper); diff != "" {
				t.Errorf("%s words: %s in capitals (-want +got):\n%s", name, word, diff)
			}
		}
		if got := about(""); got != hintNone {
			t.Errorf("%s words: got no word with %d", name, got)
		}
	}
}
