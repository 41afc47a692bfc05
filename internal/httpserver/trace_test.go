package httpserver

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	goodTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	goodParent = "00f067aa0ba902b7"
)

func TestTraceparent(t *testing.T) {
	cases := []struct {
		name, header string
		ok           bool
	}{
		{"sampled", "00-" + goodTrace + "-" + goodParent + "-01", true},
		{"not sampled", "00-" + goodTrace + "-" + goodParent + "-00", true},
		{"unknown flags", "00-" + goodTrace + "-" + goodParent + "-ff", true},
		{"later version", "cc-" + goodTrace + "-" + goodParent + "-01", true},
		{"later version with more fields", "cc-" + goodTrace + "-" + goodParent + "-01-what-comes", true},
		{"later version, more without a dash", "cc-" + goodTrace + "-" + goodParent + "-01x", false},
		{"version 00 with more", "00-" + goodTrace + "-" + goodParent + "-01-x", false},
		{"version ff", "ff-" + goodTrace + "-" + goodParent + "-01", false},
		{"no version", goodTrace + "-" + goodParent + "-01", false},
		{"upper case", "00-" + strings.ToUpper(goodTrace) + "-" + goodParent + "-01", false},
		{"zero trace", "00-" + strings.Repeat("0", 32) + "-" + goodParent + "-01", false},
		{"zero parent", "00-" + goodTrace + "-" + strings.Repeat("0", 16) + "-01", false},
		{"short", "00-" + goodTrace[1:] + "-" + goodParent + "-01", false},
		{"no hex", "00-" + strings.Repeat("g", 32) + "-" + goodParent + "-01", false},
		{"no hex in the flags", "00-" + goodTrace + "-" + goodParent + "-0g", false},
		{"other separators", "00_" + goodTrace + "_" + goodParent + "_01", false},
		{"blanks around", " 00-" + goodTrace + "-" + goodParent + "-01", false},
		{"empty", "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, ok := parseTraceparent(c.header)
			if ok != c.ok || ok && got != goodTrace || !ok && got != "" {
				t.Errorf("parseTraceparent(%q): got %q, %t, want %t", c.header, got, ok, c.ok)
			}
		})
	}
}

// Accepted values contain a valid trace id, and generated valid values are accepted.
func TestTraceparent_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[0-9a-f]{2}-[0-9a-fA-F]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?`),
		).Draw(t, "header")
		id, ok := parseTraceparent(s)
		if ok && (len(id) != traceIDLen || !isLowerHex(id) || isAllZero(id) || !strings.Contains(s, id)) {
			t.Errorf("parseTraceparent(%q): got %q, want it rejected", s, id)
		}
		trace := rapid.StringMatching(`[0-9a-f]{31}[1-9a-f]`).Draw(t, "trace")
		if got, ok := parseTraceparent("00-" + trace + "-" + goodParent + "-01"); !ok || got != trace {
			t.Errorf("got %q, %t, want %q", got, ok, trace)
		}
	})
}
