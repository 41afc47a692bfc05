package prompts_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/prompts"
)

func TestQuote(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", `""`},
		{"words", "review my code", `"review my code"`},
		{"letters of every script", "não, ¿qué?, 审查代码, мир, שלום, नमस्ते, 🚀", `"não, ¿qué?, 审查代码, мир, שלום, नमस्ते, 🚀"`},
		{"quotes and backslashes", `say "\n" \`, `"say \"\\n\" \\"`},
		{"newlines", "a\nb\r\n\tc", `"a\nb\r\n\tc"`},
		{"template delimiters", "a >>> <<< b & c", `"a \u003e\u003e\u003e \u003c\u003c\u003c b \u0026 c"`},
		{"control characters", "\x00\x1b[2J\x7f\u0085\b\f", `"\u0000\u001b[2J\u007f\u0085\u0008\u000c"`},
		{"line and paragraph separators", "a\u2028b\u2029c", `"a\u2028b\u2029c"`},
		{"bidirectional marks", "\u202edcba\u2066\u200f", `"\u202edcba\u2066\u200f"`},
		{"zero-width characters", "a\u200bb\u200dc\ufeffd\u2060\u00ade", `"a\u200bb\u200dc\ufeffd\u2060\u00ade"`},
		{"unusual spaces", "a\u00a0b\u2003c\u3000d", `"a\u00a0b\u2003c\u3000d"`},
		{"letters without a glyph", "a\u3164b\u115fc\u034fd", `"a\u3164b\u115fc\u034fd"`},
		{"variation selectors", "☀\ufe0f\U000e0101", `"☀\ufe0f\udb40\udd01"`},
		{"tag characters", "\U000e0041\U000e007f", `"\udb40\udc41\udb40\udc7f"`},
		{"private use and noncharacters", "\ue000\U000f0000\ufffe\U0010ffff", `"\ue000\udb80\udc00\ufffe\udbff\udfff"`},
		{"unassigned", "\u0378", `"\u0378"`},
		{"not UTF-8", "a\xff\xc3b", "\"a\uFFFD\uFFFDb\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, prompts.Quote(tt.in)); diff != "" {
				t.Errorf("quote(%+q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

// anyText generates text with characters that may break quoting.
func anyText() *rapid.Generator[string] {
	odd := rapid.SampledFrom([]string{
		`"`, `\`, `\"`, `\u0022`, "\n", "\r", ">>>", "<<<", "\u2028", "\u202e", "\u200b", "\U000e0022", "\ud7ff", "\ufeff", "\x00", "{", "}", "CONSTRAINTS\n- ",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(odd, rapid.String()), 0, 12).Draw(t, "pieces"), "")
	})
}

// TestQuote_RoundTrip checks that a quoted text is a JSON string on one line
// with the same value.
func TestQuote_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		quoted := prompts.Quote(text)
		var got string
		if err := json.Unmarshal([]byte(quoted), &got); err != nil {
			t.Fatalf("%s is not a JSON string: %v", quoted, err)
		}
		if got != text {
			t.Errorf("got %+q back, want %+q", got, text)
		}
		if inside := quoted[1 : len(quoted)-1]; strings.ContainsAny(inside, "\n\r<>&\u2028\u2029") || strings.ContainsFunc(inside, prompts.Hidden) {
			t.Errorf("got %+q, want one line without invisible characters and delimiters", quoted)
		}
	})
}

func TestClean(t *testing.T) {
	tests := []struct {
		name, in string
		most     int
		want     string
	}{
		{"words", "reviews code", 99, "reviews code"},
		{"white space", "  a\n\n b\t\u00a0\u2028c  ", 99, "a b c"},
		{"invisible characters", "a\u200bb \u202ec\u0000d\U000e0041\ufe0f\ue000", 99, "ab cd"},
		{"nothing left", "\u200b \U000e0041\n", 99, ""},
		{"quotes and delimiters", `"a" <b> & c`, 99, `"a" <b> & c`},
		{"at the limit", "abc", 3, "abc"},
		{"above the limit", "abcd", 3, "abc… [cut]"},
		{"limit in characters", "审查代码", 4, "审查代码"},
		{"cut at a character", "审查代码", 3, "审查代… [cut]"},
		{"counted after cleaning", "a\u200b\u200b\u200b   b", 3, "a b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, prompts.Clean(tt.in, tt.most)); diff != "" {
				t.Errorf("clean(%+q, %d) (-want +got):\n%s", tt.in, tt.most, diff)
			}
		})
	}
}

// TestClean_Properties checks that clean text is visible, short, on one line,
// and stable.
func TestClean_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, most := anyText().Draw(t, "text"), rapid.IntRange(1, 40).Draw(t, "most")
		got := prompts.Clean(text, most)
		switch {
		case strings.ContainsFunc(got, prompts.Hidden):
			t.Errorf("got %+q, want no invisible character", got)
		case strings.Contains(got, "  "), strings.TrimSpace(got) != got:
			t.Errorf("got %+q, want single spaces between words only", got)
		case utf8.RuneCountInString(strings.TrimSuffix(got, prompts.CutMark)) > most:
			t.Errorf("got %d characters, want at most %d", utf8.RuneCountInString(got), most)
		}
		if !strings.HasSuffix(got, prompts.CutMark) && prompts.Clean(got, most) != got {
			t.Errorf("got %+q after cleaning %+q again", prompts.Clean(got, most), got)
		}
	})
}
