package redact

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Other code depends on the order of the detectors.
func TestDetectors_Table(t *testing.T) {
	names, labels := map[string]bool{}, map[string]bool{}
	for row, k := range detectors {
		if names[k.name] || labels[k.label] {
			t.Errorf("row %d: got duplicate name %q or label %q", row, k.name, k.label)
		}
		names[k.name], labels[k.label] = true, true
		if strings.ContainsFunc(k.label, func(r rune) bool { return !unicode.IsUpper(r) || r > 'Z' }) {
			t.Errorf("row %d: got label %q, want capitals only, as parsed in placeholders", row, k.label)
		}
		if k.possible == nil || (k.find == nil) != (row == literalRow || nationalIDs.has(row)) {
			t.Errorf("row %d, %s: got no scanner, or no reason for it", row, k.label)
		}
		if k.name == "all" || k.name == "none" {
			t.Errorf("row %d: got %q, which has another meaning in restore", row, k.name)
		}
	}
	if len(detectors) > 32 {
		t.Errorf("got %d rows, which do not fit into a kindSet", len(detectors))
	}
}

func TestResolveOverlaps(t *testing.T) {
	const secret, card, phone = secretRow, cardRow, phoneRow
	for _, tc := range []struct {
		name     string
		in, want []span
	}{
		{"apart", []span{{5, 9, card}, {0, 4, phone}}, []span{{0, 4, phone}, {5, 9, card}}},
		{"side by side", []span{{0, 4, card}, {4, 8, phone}}, []span{{0, 4, card}, {4, 8, phone}}},
		{"nested", []span{{2, 4, secret}, {0, 9, phone}}, []span{{0, 9, phone}}},
		{"equal", []span{{0, 9, phone}, {0, 9, card}}, []span{{0, 9, card}}},
		{"same start", []span{{0, 5, secret}, {0, 9, phone}}, []span{{0, 9, phone}}},
		{"later is longer", []span{{0, 5, secret}, {4, 12, phone}}, []span{{4, 12, phone}}},
		{"earlier is longer", []span{{0, 9, phone}, {8, 12, secret}}, []span{{0, 9, phone}}},
		{"equal length, more specific", []span{{0, 5, phone}, {3, 8, card}}, []span{{3, 8, card}}},
		{"equal length, less specific", []span{{0, 5, card}, {3, 8, phone}}, []span{{0, 5, card}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, resolveOverlaps(tc.in), cmp.AllowUnexported(span{})); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
		})
	}
}

// No detector finds a value that byteCounts excludes, or that exceeds the text.
func TestByteCounts_SkipNoValue(t *testing.T) {
	parts := []string{
		"bob@example.com", "4111111111111111", "DE89370400440532013000", "10.0.0.7", "::1", "2001:db8::1", "+14155550132", "call 5550132",
		"111.444.777-35", "12.ABC.345/01DE-35", "X1234567L", "nif ", "123456789", "536-90-4399",
		"password=hunter2", "a", "1", ".", ":", "@", " ", "-", "[", "(", "é", "GB", "82",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 8).Draw(t, "parts"), "")
		l := countBytes(text)
		for row, k := range detectors[:literalRow] {
			find := k.find
			if nationalIDs.has(row) {
				find = func(text string, found []span) []span { return findNationalIDs(text, 1<<row, found) }
			}
			for _, s := range find(text, nil) {
				if !k.possible(l) {
					t.Fatalf("%s in %q: got it excluded, and found: %q", k.name, text, text[s.start:s.end])
				}
				if s.start < 0 || s.start >= s.end || s.end > len(text) {
					t.Fatalf("row %d in %q: got %d to %d", row, text, s.start, s.end)
				}
			}
		}
	})
}

// Gaps are scanned again a bounded number of times.
func TestSearchText_ScansGaps(t *testing.T) {
	text := strings.Repeat("4111111111111111a@b.cc ", 200)
	if n := len(findValues(text, allKinds)); n != 200 {
		t.Errorf("got %d finds, want 200", n)
	}
	for _, unit := range []string{"1.1.1.1a@b.cc", "a@b.cc4111111111111111 ", "x@y.zz1.1.1.1:", "::1@b.cc"} {
		found := findValues(strings.Repeat(unit, 500), allKinds)
		for i := 1; i < len(found); i++ {
			if found[i].start < found[i-1].end {
				t.Fatalf("%q: got overlapping finds %v and %v", unit, found[i-1], found[i])
			}
		}
	}
}

func TestHintBefore(t *testing.T) {
	about := func(word string) wordHint {
		switch word {
		case "call":
			return hintPositive
		case "order":
			return hintNegative
		case "number":
			return hintWeak
		}
		return hintNone
	}
	for _, tc := range []struct {
		text string
		want wordHint
	}{
		{"", hintNone},
		{"call ", hintPositive},
		{"Call me at: ", hintPositive},
		{"recall ", hintNone},
		{"number ", hintWeak},
		{"order number ", hintNegative},
		{"number of the call ", hintPositive},
		{"call about the order ", hintNegative},
		{"call a b c d e ", hintPositive},
		{"call a b c d e f ", hintNone},
		{"call [EMAIL_1] ", hintNone},
		{"call" + strings.Repeat(" ", nearBytes), hintNone},
		{"supercalifragilisticexpialidocious call ", hintPositive},
	} {
		if got := hintBefore(tc.text+"123", len(tc.text), about); got != tc.want {
			t.Errorf("%q: got %d, want %d", tc.text, got, tc.want)
		}
	}
	for _, tc := range []struct {
		text string
		want wordHint
	}{{" call", hintPositive}, {"-Call!", hintPositive}, {" (order)", hintNegative}, {"\ncall", hintNone}, {"", hintNone}, {" a call", hintNone}} {
		if got := hintAfter("1"+tc.text, 1, about); got != tc.want {
			t.Errorf("after %q: got %d, want %d", tc.text, got, tc.want)
		}
	}
}
