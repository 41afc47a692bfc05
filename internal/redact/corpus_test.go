package redact_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/testkit"
)

func redactor(t testing.TB, cfg redact.Config) *redact.Redactor {
	t.Helper()
	r, err := redact.New(cfg)
	if err != nil {
		t.Fatalf("New(%+v): %v", cfg, err)
	}
	return r
}

// eachLine decodes a file with one JSON object per line.
func eachLine[T any](t *testing.T, path string, visit func(T)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		visit(row)
	}
}

// figure counts found values.
type figure struct{ hit, of int }

func (f *figure) add(hit bool) {
	f.of++
	if hit {
		f.hit++
	}
}

func (f figure) share() float64 { return float64(f.hit) / float64(max(f.of, 1)) }

// TestMaskText_SyntheticTexts measures sentences with values at known
// positions. A value is found if nothing of it remains; masking other text is a
// false positive.
func TestMaskText_SyntheticTexts(t *testing.T) {
	type row struct {
		Text  string
		Spans []struct{ Type, Value string }
	}
	kindOf := map[string]string{
		"EMAIL_ADDRESS": redact.Email, "PHONE_NUMBER": redact.Phone, "CREDIT_CARD": redact.Card,
		"IBAN_CODE": redact.IBAN, "IP_ADDRESS": redact.IP,
	}
	found, all, wrong := map[string]*figure{}, figure{}, figure{}
	eachLine(t, testkit.Shared(t, "data", "pii", "presidio_synth_v2.jsonl"), func(r row) {
		m := redactor(t, redact.Config{}).StartMasking()
		masked := m.MaskText(r.Text)
		ours := false
		for _, s := range r.Spans {
			kind, ok := kindOf[s.Type]
			if !ok {
				continue
			}
			ours = true
			if found[kind] == nil {
				found[kind] = &figure{}
			}
			hit := !strings.Contains(masked, s.Value)
			if !hit {
				t.Logf("missed %s %q in %q", kind, s.Value, r.Text)
			}
			found[kind].add(hit)
			all.add(hit)
		}
		if !ours {
			wrong.add(masked != r.Text)
			if masked != r.Text {
				t.Logf("false: %q", masked)
			}
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		t.Logf("%-6s recall %.4f (%d of %d)", kind, found[kind].share(), found[kind].hit, found[kind].of)
	}
	t.Logf("all    recall %.4f (%d of %d); texts without any of them that were masked: %.4f (%d of %d)",
		all.share(), all.hit, all.of, wrong.share(), wrong.hit, wrong.of)
	if all.share() < 0.995 {
		t.Errorf("recall: got %.4f, want at least 0.995", all.share())
	}
	if wrong.share() > 0.01 {
		t.Errorf("false finds: got %.4f, want at most 0.01", wrong.share())
	}
}

// TestMaskText_RecognizerCases checks difficult values and similar text. It skips
// national phone numbers without context, because bare digits are ambiguous.
func TestMaskText_RecognizerCases(t *testing.T) {
	type row struct {
		Recognizer, Text string
		Matches          int
	}
	kindOf := map[string]string{
		"email": redact.Email, "phone": redact.Phone, "credit_card": redact.Card, "iban": redact.IBAN, "ip": redact.IP,
	}
	hard, wrong := figure{}, figure{}
	eachLine(t, testkit.Shared(t, "corpora", "pii", "recognizer_cases.jsonl"), func(r row) {
		kind, ok := kindOf[r.Recognizer]
		if !ok {
			return
		}
		masked := redactor(t, redact.Config{Kinds: []string{kind}}).StartMasking().MaskText(r.Text)
		got := strings.Count(masked, "["+strings.ToUpper(kind)+"_")
		if r.Matches == 0 {
			wrong.add(got > 0)
			if got > 0 {
				t.Logf("false %s: %q → %q", kind, r.Text, masked)
			}
			return
		}
		hard.add(got >= r.Matches)
		if got < r.Matches {
			t.Logf("missed %s: %q → %q", kind, r.Text, masked)
		}
	})
	t.Logf("hard: recall %.4f (%d of %d), false %.4f (%d of %d)", hard.share(), hard.hit, hard.of, wrong.share(), wrong.hit, wrong.of)
	if hard.share() < 0.975 {
		t.Errorf("recall: got %.4f, want at least 0.975", hard.share())
	}
	if wrong.share() > 0.02 {
		t.Errorf("false finds: got %.4f, want at most 0.02", wrong.share())
	}
}

// TestMaskText_OtherIdentifiers counts other kinds of numbers, mostly official
// ids, that are mistaken for a kind. A few are correct, because a number may
// also be valid for the kind.
func TestMaskText_OtherIdentifiers(t *testing.T) {
	type row struct{ Recognizer, Text string }
	ours := []string{"email", "phone", "credit_card", "iban", "ip", "ph_mobile_number", "tr_phone_number", "pattern", "url", "spacy", "stanza", "transformers"}
	taken := figure{}
	eachLine(t, testkit.Shared(t, "corpora", "pii", "recognizer_cases.jsonl"), func(r row) {
		if slices.Contains(ours, r.Recognizer) {
			return
		}
		masked := redactor(t, redact.Config{}).RedactText(r.Text)
		taken.add(masked != r.Text)
		if masked != r.Text {
			t.Logf("%s: %q → %q", r.Recognizer, r.Text, masked)
		}
	})
	t.Logf("other identifiers taken for ours: %.4f (%d of %d)", taken.share(), taken.hit, taken.of)
}
