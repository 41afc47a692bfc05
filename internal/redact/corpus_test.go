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

// TestMaskText_SyntheticTexts measures sentences with values at known positions. A value counts as
// found if no part of it remains; masking other text is a false positive.
func TestMaskText_SyntheticTexts(t *testing.T) {
	type row struct {
		Text  string
		Spans []struct{ Type, Value string }
	}
	kindOf := map[string]string{
		"EMAIL_ADDRESS": redact.Email, "PHONE_NUMBER": redact.Phone, "CREDIT_CARD": redact.Card,
		"IBAN_CODE": redact.IBAN, "IP_ADDRESS": redact.IP, "US_SSN": redact.SSN,
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

// TestMaskText_RecognizerCases checks difficult values and similar text. It skips national phone
// numbers without context, because digits alone are ambiguous.
func TestMaskText_RecognizerCases(t *testing.T) {
	type row struct {
		Recognizer, Text string
		Matches          int
	}
	kindOf := map[string]string{
		"email": redact.Email, "phone": redact.Phone, "credit_card": redact.Card, "iban": redact.IBAN, "ip": redact.IP,
		"us_ssn": redact.SSN, "es_nif": redact.DNI, "es_nie": redact.DNI,
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

// TestMaskText_NationalIDs measures generated identifiers in sentences, and the same with a wrong
// check digit.
func TestMaskText_NationalIDs(t *testing.T) {
	type row struct {
		Kind, Text string
		Span       []int // in characters; nil = none
	}
	kindOf := map[string]string{
		"CPF": redact.CPF, "CNPJ": redact.CNPJ, "CNPJ_alnum_2026": redact.CNPJ, "PT_NIF": redact.NIF, "ES_DNI": redact.DNI,
	}
	r := redactor(t, redact.Config{})
	found, wrong := map[string]*figure{}, figure{}
	eachLine(t, testkit.Shared(t, "corpora", "own-lists", "pii_br_pt_es.jsonl"), func(x row) {
		got := r.RedactText(x.Text)
		if x.Span == nil {
			wrong.add(got != x.Text)
			if got != x.Text {
				t.Logf("false: %q → %q", x.Text, got)
			}
			return
		}
		if found[x.Kind] == nil {
			found[x.Kind] = &figure{}
		}
		chars := []rune(x.Text)
		want := string(chars[:x.Span[0]]) + "[" + strings.ToUpper(kindOf[x.Kind]) + "]" + string(chars[x.Span[1]:])
		found[x.Kind].add(got == want)
		if got != want {
			t.Logf("missed: %q: got %q, want %q", x.Text, got, want)
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		t.Logf("%-15s recall %.4f (%d of %d)", kind, found[kind].share(), found[kind].hit, found[kind].of)
		if found[kind].share() < 0.97 {
			t.Errorf("%s: got recall %.4f, want at least 0.97", kind, found[kind].share())
		}
	}
	t.Logf("false %.4f (%d of %d)", wrong.share(), wrong.hit, wrong.of)
	if wrong.share() > 0.05 {
		t.Errorf("false finds: got %.4f, want at most 0.05", wrong.share())
	}
}

// notations are ways to write a secret with its name.
var notations = []string{
	`%Token="$"`, `%Token = $`, `%_token: $`, `%_token: '$'`, `{"%_token": "$"}`, `{\"%_token\": \"$\"}`, `{"name": "%_token", "value": "$"}`,
	`<%Token>$</%Token>`, "<%Token>\n  $\n</%Token>", `<entry key="%Token" value="$"/>`, "%_token: |\n  $\n", "%_token: >\n  $\n",
	`var %Token string = "$"`, "%Token := `$`", `String %Token = "$";`, `let %Token: string = '$'`, `$%Token .= "$";`, `%Token ??= "$"`,
	`"%_token" => "$"`, `setProperty("%_token", "$")`, `%Token,$,`, `%_TOKEN ::= $`, `%_TOKEN :::= $`, `%_TOKEN ?= $`, `%_TOKEN += $`,
}

// TestMaskText_SecretExamples measures the examples of a public list of rules, which are generated
// by "make masking". A secret counts as found if neither half of it remains.
func TestMaskText_SecretExamples(t *testing.T) {
	path := os.Getenv("SECRET_EXAMPLES")
	if path == "" {
		t.Skip("run make masking")
	}
	type row struct{ Rule, Text, Secret, Name string }
	// The secrets of these rules are not of a masked kind: ids, values after the name of a service
	// only, any value in a Kubernetes secret.
	unnamed := []string{
		"azure-ad-client-secret", "cloudflare-api-key", "cloudflare-global-api-key", "cloudflare-origin-ca-key", "heroku-api-key", "hubspot-api-key",
		"kubernetes-secret-yaml", "messagebird-client-id", "sidekiq-secret", "sidekiq-sensitive-url", "snyk-api-token", "sumologic-access-id",
	}
	r := redactor(t, redact.Config{})
	byRule, all, named, wrong := map[string]*figure{}, figure{}, figure{}, figure{}
	eachLine(t, path, func(x row) {
		if x.Secret == "" {
			wrong.add(strings.Contains(r.RedactText(x.Text), "[SECRET]"))
			return
		}
		texts := []string{x.Text}
		if x.Name != "" {
			texts = nil
			for _, n := range notations {
				name, value, _ := strings.Cut(strings.ReplaceAll(n, "$%", "%"), "$")
				texts = append(texts, strings.ReplaceAll(name, "%", x.Name)+x.Secret+strings.ReplaceAll(value, "%", x.Name))
			}
		}
		if byRule[x.Rule] == nil {
			byRule[x.Rule] = &figure{}
		}
		half := len(x.Secret) / 2
		for _, text := range texts {
			got := r.RedactText(text)
			hit := !strings.Contains(got, x.Secret[:half]) && !strings.Contains(got, x.Secret[half:])
			byRule[x.Rule].add(hit)
			all.add(hit)
			if !slices.Contains(unnamed, x.Rule) {
				named.add(hit)
			}
		}
	})
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		if f := byRule[rule]; f.hit < f.of {
			t.Logf("%s: %d of %d", rule, f.hit, f.of)
		}
	}
	t.Logf("secrets: recall %.4f (%d of %d), of the named kinds %.4f (%d of %d); masked text that a rule excludes: %.4f (%d of %d)",
		all.share(), all.hit, all.of, named.share(), named.hit, named.of, wrong.share(), wrong.hit, wrong.of)
	if named.share() < 0.95 {
		t.Errorf("recall of the named kinds: got %.4f, want at least 0.95", named.share())
	}
}

// TestMaskText_OtherIdentifiers counts other kinds of numbers, mostly official ids, that are
// mistaken for a kind. A few are correct, because a number may also be valid for the kind.
func TestMaskText_OtherIdentifiers(t *testing.T) {
	type row struct{ Recognizer, Text string }
	ours := []string{"email", "phone", "credit_card", "iban", "ip", "us_ssn", "es_nif", "es_nie", "ph_mobile_number", "tr_phone_number", "pattern", "url", "spacy", "stanza", "transformers"}
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
	t.Logf("other identifiers masked: %.4f (%d of %d)", taken.share(), taken.hit, taken.of)
}
