package fallback_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/redact"
)

// Without a limit the result is the fully restored text. With a limit it is a prefix of it, except
// that values longer than the limit stay placeholders.
func TestRestoreValues_StaysWithinLimit(t *testing.T) {
	redactor, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	masking := redactor.StartMasking()
	masking.MaskText("ana@example.com 10.0.0.7 [EMAIL_1] bob.of.a.long.name@mail.example.com")
	restore := func(text string) string { return masking.RestoreText(text, nil) }
	pieces := rapid.SliceOf(rapid.SampledFrom([]string{
		"[EMAIL_1]", "[EMAIL_2]", "[EMAIL_3]", "[IP_1]", "[LITERAL_1]", "[", "]", "[]", "[x](y)", " ", "a word", "é",
	}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(pieces.Draw(t, "pieces"), "")
		whole := restore(text)
		const room = 1 << 20
		if got, full := fallback.RestoreValues(text, room, restore); got != whole || full {
			t.Errorf("%q: got %q, full %v; want %q", text, got, full, whole)
		}
		const longest = len("bob.of.a.long.name@mail.example.com")
		most := rapid.IntRange(longest, 2*longest).Draw(t, "most")
		got, full := fallback.RestoreValues(text, most, restore)
		if !strings.HasPrefix(whole, got) || (full && len(got) > most) || (!full && len(got) <= most && got != whole) {
			t.Errorf("%q in %d bytes: got %q, full %v; want a prefix of %q", text, most, got, full, whole)
		}
	})
}
