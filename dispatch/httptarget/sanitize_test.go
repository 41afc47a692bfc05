package httptarget

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSanitize_RemovesControlCharactersAndCuts(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain":                       {"must be one of", "must be one of"},
		"other scripts":               {"não é válido: 状態", "não é válido: 状態"},
		"terminal control characters": {"a\x1b[2Jb\rc\nd\te\x7f\u009b", "a[2Jbcde"},
		"writing direction":           {"a\u202eb\u2066c\u200fd", "abcd"},
		"invisible":                   {"a\u200bb\ufeffc\u2028d", "abcd"},
		"long":                        {strings.Repeat("x", 500), strings.Repeat("x", 160) + "…"},
		"long, cut in a character":    {strings.Repeat("é", 100) + "é", strings.Repeat("é", 80) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sanitizeText(tc.text)); diff != "" {
				t.Errorf("sanitize (-want +got):\n%s", diff)
			}
		})
	}
	if got := sanitizeText("x" + strings.Repeat("é", 100)); got != "x"+strings.Repeat("é", 79)+"…" {
		t.Errorf("got %q, want no cut inside a character", got)
	}
}
