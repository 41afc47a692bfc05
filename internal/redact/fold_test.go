package redact

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestFoldText(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"plain", "abc 1-2", "abc 1-2"},
		{"accents stay", "ação naïve", "ação naïve"},
		{"full width", "ＡＢｃ１２＠．（）", "ABc12@.()"},
		{"ideographic blank", "a\u3000b", "a b"},
		{"blanks of all widths", "a\u00a0b\u2003c\u202fd\u205fe", "a b c d e"},
		{"dashes", "1‐2‑3‒4–5—6―7−8", "1-2-3-4-5-6-7-8"},
		{"invisible characters", "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u202eh\ufe0fi\U000e0041j", "abcdefghij"},
		{"Arabic digits", "٠١٢٣٤٥٦٧٨٩", "0123456789"},
		{"Persian digits", "۰۱۲۳۴۵۶۷۸۹", "0123456789"},
		{"Devanagari digits", "०१२३४५६७८९", "0123456789"},
		{"mathematical digits", "𝟎𝟏𝟐𝟑𝟗𝟘𝟡𝟢𝟫𝟬𝟵𝟶𝟿", "0123909090909"},
		{"bytes that are no text", "a\xffb\xe2\x80", "a\xffb\xe2\x80"},
		{"replacement character", "a\ufffdb", "a\ufffdb"},
		{"other signs", "¹①Ⅳ½", "¹①Ⅳ½"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := foldText(tc.text).text; got != tc.want {
				t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
			}
			if got, want := needsFolding(tc.text), tc.text != tc.want; got != want {
				t.Errorf("foldable %q: got %t, want %t", tc.text, got, want)
			}
		})
	}
}

// Every decimal digit of Unicode has its value, because scripts assign them in ascending order.
func TestFoldText_EveryDigit(t *testing.T) {
	run := rune(0)
	for r := rune(0x660); r <= unicode.MaxRune; r++ {
		if !unicode.IsDigit(r) {
			run = 0
			continue
		}
		if got := foldRune(r); got != '0'+run%10 {
			t.Errorf("%U: got %q, want %q", r, got, '0'+run%10)
		}
		run++
	}
}

// The position map leads to the original character, for any bytes.
func TestFoldText_PositionMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.StringOf(rapid.SampledFrom([]rune("a1 １＠\u200b\u00a0é是😀"))),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		).Draw(t, "text")
		f := foldText(text)
		if len(f.starts) != len(f.text) || len(f.ends) != len(f.text) {
			t.Fatalf("%q: got %d bytes with %d starts and %d ends", text, len(f.text), len(f.starts), len(f.ends))
		}
		last := 0
		for i := range len(f.text) {
			if f.starts[i] < last || f.ends[i] <= f.starts[i] || f.ends[i] > len(text) {
				t.Fatalf("%q: byte %d of %q: got position %d to %d", text, i, f.text, f.starts[i], f.ends[i])
			}
			last = f.starts[i]
			if r, n := utf8.DecodeRuneInString(text[f.starts[i]:]); n != f.ends[i]-f.starts[i] || foldRune(r) == runeDropped {
				t.Fatalf("%q: byte %d of %q: got %q", text, i, f.text, text[f.starts[i]:f.ends[i]])
			}
		}
	})
}
