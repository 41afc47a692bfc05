package main

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTextWidth(t *testing.T) {
	tests := []struct {
		name, text string
		want       int
	}{
		{"empty", "", 0},
		{"ascii", "python", 6},
		{"accents", "código", 6},
		{"combining accent", "co\u0301digo", 6},
		{"Cyrillic", "проверка", 8},
		{"Chinese", "代码审查", 8},
		{"Japanese", "コードレビュー", 14},
		{"half-width kana", "ｺｰﾄﾞ", 4},
		{"Korean", "코드 리뷰", 9},
		{"Korean jamo", "\u1100\u1161", 3},
		{"full-width letters", "ＡＢ", 4},
		{"ideographic space", "\u3000", 2},
		{"rare Han", "𠮷", 2},
		{"emoji", "🚀", 2},
		{"emoji with selector", "✔\ufe0f", 1},
		{"zero-width joiner", "a\u200db", 2},
		{"dashes and signs", "− … · ✓ ✗", 9},
		{"Thai", "ก็", 1},
	}
	for _, tt := range tests {
		if got := textWidth(tt.text); got != tt.want {
			t.Errorf("%s: got %d columns for %q, want %d", tt.name, got, tt.text, tt.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"plain", "a b\nc", "a b\nc"},
		{"tab", "a\tb", "a    b"},
		{"Windows line end", "a\r\nb", "a\nb"},
		{"escape sequence", "\x1b[31mred", "\ufffd[31mred"},
		{"one-byte CSI", "\u009b31m", "\ufffd31m"},
		{"bell and null", "\a\x00", "\ufffd\ufffd"},
		{"lone carriage return", "good\rbad", "good\ufffdbad"},
		{"direction override", "\u202eabc\u202c", "\ufffdabc\ufffd"},
		{"isolate", "\u2066abc\u2069", "\ufffdabc\ufffd"},
		{"right-to-left mark", "א\u200f", "א\u200f"},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
	}
	for _, tt := range tests {
		if got := printable(tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got, want := oneLine("a\nb\r\n\nc\x1b"), "a; b; c\ufffd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"代码审查", 8, "代码审查"},
		{"代码审查", 7, "代码审…"},
		{"代码审查", 6, "代码…"},
	}
	for _, tt := range tests {
		if got := cut(tt.text, tt.width); got != tt.want {
			t.Errorf("cut(%q, %d): got %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		name, text string
		width      int
		want       []string
	}{
		{"empty", "", 5, []string{""}},
		{"fits", "a b c", 5, []string{"a b c"}},
		{"at a space", "aaa bbb ccc", 7, []string{"aaa bbb", "ccc"}},
		{"space at the edge", "aaaa bbbb", 4, []string{"aaaa", "bbbb"}},
		{"long word", "aaaaaaa b", 3, []string{"aaa", "aaa", "a b"}},
		{"after wide characters", "代码审查", 5, []string{"代码", "审查"}},
		{"before a wide character", "ab代码", 4, []string{"ab代", "码"}},
		{"word before wide ones", "ab cd代码", 5, []string{"ab cd", "代码"}},
		{"leading spaces stay", "   aa bb", 6, []string{"   aa", "bb"}},
		{"all spaces", "       ", 3, []string{"", ""}},
		{"combining at the edge", "abc\u0301 d", 3, []string{"abc\u0301", "d"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, wrap(tt.text, tt.width)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A megabyte on one line takes no longer than a megabyte of lines. With time
// that grows with the square of it, this test would not end.
func TestWrapLongLine(t *testing.T) {
	const width = 50
	text := strings.Repeat("0123456789", 1_000_000/10)
	if got, want := len(wrap(text, width)), len(text)/width; got != want {
		t.Errorf("got %d lines, want %d", got, want)
	}
}

func TestWrapBelow(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"prose", "one two three four five six seven eight nine", []string{"one two three four five six seven eight", "nine"}},
		{"fits", "a  b", []string{"a  b"}},
		{"columns", "x  warning  the last column is explained at length", []string{"x  warning  the last column is explained", "            at length"}},
		{"list item", "- one two three four five six seven eight nine", []string{"- one two three four five six seven", "  eight nine"}},
		{"indented list item", "  * one two three four five six seven eight nine", []string{"  * one two three four five six seven", "    eight nine"}},
		{"numbered item", "12. one two three four five six seven eight nine", []string{"12. one two three four five six seven", "    eight nine"}},
		{"end of a sentence", "One two three.  Four five six seven eight nine ten", []string{"One two three.  Four five six seven", "eight nine ten"}},
		{"column too far right", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa  bbbbbbbbb ccc", []string{"aaaaaaaaaaaaaaaaaaaaaaaaaaaa  bbbbbbbbb", "ccc"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, wrapBelow(tt.text, 40)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Whatever the text, no line is too wide and nothing but spaces is lost.
func TestWrapKeepsEverything(t *testing.T) {
	visible := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == ' ' {
				return -1
			}
			return r
		}, s)
	}
	texts := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("ab  -.代码e\u0301🚀")), rapid.RuneFrom(nil, unicode.L, unicode.P)))
	rapid.Check(t, func(t *rapid.T) {
		text, width := texts.Draw(t, "text"), rapid.IntRange(2, 60).Draw(t, "width")
		for name, lines := range map[string][]string{"wrap": wrap(text, width), "wrapBelow": wrapBelow(text, width)} {
			for _, line := range lines {
				if textWidth(line) > width {
					t.Fatalf("%s: %q is wider than %d", name, line, width)
				}
			}
			if got, want := visible(strings.Join(lines, "")), visible(text); got != want {
				t.Fatalf("%s: got %q of %q", name, got, want)
			}
		}
	})
}
