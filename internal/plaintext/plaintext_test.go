package plaintext_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/plaintext"
)

func TestCountNoun(t *testing.T) {
	for n, want := range map[int]string{0: "0 agents", 1: "1 agent", 2: "2 agents"} {
		if got := plaintext.CountNoun(n, "agent"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestClean(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"words", "A mango has a stone.", "A mango has a stone."},
		{"newlines and tabs", "a\n\tb\n", "a\n\tb"},
		{"other newlines", "a\r\nb\u2028c\u0085d", "a\nb\nc\nd"},
		{"terminal escapes", "a\x1b[31mred\x1b[0m\x07\x00b\u009b", "a[31mred[0mb"},
		{"bidirectional marks", "a\u202eb\u2066c\u200fd", "abcd"},
		{"carriage return", "book\ra flight", "book a flight"},
		{"zero-width characters", "\ufeffbo\u200bok\u2060 a\u00ad\u180e", "book a"},
		{"tag characters", "a\U000e0068\U000e0069b", "ab"},
		{"joiners", "👩\u200d💻 می\u200cخواهم", "👩\u200d💻 می\u200cخواهم"},
		{"surrounding space", "  \n a \n ", "a"},
		{"nothing left", "\u202e\x00\n", ""},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, plaintext.Clean(tt.in)); diff != "" {
				t.Errorf("Clean(%+q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestSingleLine(t *testing.T) {
	if got, want := plaintext.SingleLine("\ufeffbook\r\ta\u200b flight\n\x1b[31m"), "book a flight [31m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIsControl(t *testing.T) {
	for r, want := range map[rune]bool{
		'\n': true, '\x1b': true, '\u0085': true, '\u200b': true, '\u2029': true, '\u202e': true, '\u2066': true, '\ufeff': true,
		' ': false, 'é': false, '\u00a0': false,
	} {
		if got := plaintext.IsControl(r); got != want {
			t.Errorf("%U: got %t, want %t", r, got, want)
		}
	}
}

func TestFormatUnequal(t *testing.T) {
	for _, tt := range []struct {
		a, b         float64
		wantA, wantB string
	}{
		{0.51, 0.58, "0.51", "0.58"},
		{0.5299, 0.5338, "0.5299", "0.5338"},
		{0.4996, 0.5, "0.4996", "0.5"},
		{0.5, 0.5, "0.5", "0.5"},
		{math.NaN(), 0.5, "NaN", "0.50"},
	} {
		if a, b := plaintext.FormatUnequal(tt.a, tt.b); a != tt.wantA || b != tt.wantB {
			t.Errorf("%v, %v: got %s, %s, want %s, %s", tt.a, tt.b, a, b, tt.wantA, tt.wantB)
		}
	}
}
