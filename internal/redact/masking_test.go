package redact_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

func TestMaskText_NumbersValues(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	if diff := cmp.Diff([]string{}, m.Kinds()); diff != "" {
		t.Errorf("kinds of an empty request (-want +got):\n%s", diff)
	}
	for _, step := range []struct{ text, want string }{
		{"nothing here", "nothing here"},
		{"bob@example.com, ann@example.com, bob@example.com", "[EMAIL_1], [EMAIL_2], [EMAIL_1]"},
		{"4111111111111111 of bob@example.com", "[CARD_1] of [EMAIL_1]"},
		{"Bob@example.com is written otherwise", "[EMAIL_3] is written otherwise"},
		{"４111111111111111 too", "[CARD_2] too"},
	} {
		if got := m.MaskText(step.text); got != step.want {
			t.Errorf("%q: got %q, want %q", step.text, got, step.want)
		}
	}
	if diff := cmp.Diff([]string{"card", "email"}, m.Kinds()); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// Each request numbers its own values.
func TestMasking_RequestsAreSeparate(t *testing.T) {
	r := redactor(t, redact.Config{})
	first, second := r.StartMasking(), r.StartMasking()
	first.MaskText("bob@example.com")
	if got, want := second.MaskText("ann@example.com"), "[EMAIL_1]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := second.RestoreText("[EMAIL_1]", nil), "ann@example.com"; got != want {
		t.Errorf("restored: got %q, want %q", got, want)
	}
}

// A placeholder in the text is restored to itself, not to another value.
func TestMaskText_PlaceholdersInText(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	for _, step := range []struct{ text, want string }{
		{"[EMAIL_1] is not bob@example.com", "[LITERAL_1] is not [EMAIL_1]"},
		{"[EMAIL_1] [LITERAL_1] [CARD_7]", "[LITERAL_1] [LITERAL_2] [LITERAL_3]"},
		{"[EMAIL_1", "[EMAIL_1"},
		{"[EMAIL_] [EMAIL_x] [email_1] [NOTE_1] [EMAIL_1234567] []", "[EMAIL_] [EMAIL_x] [email_1] [NOTE_1] [EMAIL_1234567] []"},
		{"[[EMAIL_1]]", "[[LITERAL_1]]"},
		{"[EMAIL_[EMAIL_1]]", "[EMAIL_[LITERAL_1]]"},
		{"[EMAIL_bob@example.com]", "[EMAIL_1]"},
	} {
		got := m.MaskText(step.text)
		if step.text == "[EMAIL_bob@example.com]" { // "EMAIL_bob" is a good name for a mailbox
			step.want = "[[EMAIL_2]]"
		}
		if got != step.want {
			t.Errorf("%q: got %q, want %q", step.text, got, step.want)
		}
		if back := m.RestoreText(got, nil); back != step.text {
			t.Errorf("%q: got %q restored", step.text, back)
		}
	}
	if diff := cmp.Diff([]string{"email"}, m.Kinds()); diff != "" {
		t.Errorf("kinds with a literal placeholder (-want +got):\n%s", diff)
	}
}

func TestRestoreText(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	m.MaskText("bob@example.com 10.0.0.7 4111111111111111 [CARD_1]")
	const answer = "[EMAIL_1] [IP_1] [CARD_1] [LITERAL_1] [EMAIL_2] [PHONE_1] [x] ["
	for _, tc := range []struct {
		name string
		want contract.DataClasses
		text string
	}{
		{"absent", nil, "bob@example.com 10.0.0.7 4111111111111111 [CARD_1] [EMAIL_2] [PHONE_1] [x] ["},
		{"all", contract.DataClasses{"all"}, "bob@example.com 10.0.0.7 4111111111111111 [CARD_1] [EMAIL_2] [PHONE_1] [x] ["},
		{"none", contract.DataClasses{"none"}, answer},
		{"empty", contract.DataClasses{}, answer},
		{"one", contract.DataClasses{"ip"}, "[EMAIL_1] 10.0.0.7 [CARD_1] [LITERAL_1] [EMAIL_2] [PHONE_1] [x] ["},
		{"two", contract.DataClasses{"ip", "email"}, "bob@example.com 10.0.0.7 [CARD_1] [LITERAL_1] [EMAIL_2] [PHONE_1] [x] ["},
		{"no kind", contract.DataClasses{"passport", "literal", ""}, answer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := m.RestoreText(answer, tc.want); got != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
		})
	}
}

// Restored values are not scanned again.
func TestRestoreText_IsNotRepeated(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	text := `bob@example.com password="[EMAIL_1] x9"`
	if got := m.RestoreText(m.MaskText(text), nil); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
}

func TestRestoreText_Concurrent(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	masked := m.MaskText("bob@example.com 10.0.0.7")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if got, want := m.RestoreText(masked, nil), "bob@example.com 10.0.0.7"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			m.MaskJSON(fmt.Appendf(nil, `"u%d@example.com"`, i), contract.DataClasses{"none"})
			m.Kinds()
		})
	}
	wg.Wait()
}

func TestConfig_Allow(t *testing.T) {
	r := redactor(t, redact.Config{Allow: []string{"@Example.com", "127.0.0.1", "Support@other.org"}})
	for _, tc := range []struct{ text, want string }{
		{"bob@example.com and ann@EXAMPLE.com", "bob@example.com and ann@EXAMPLE.com"},
		{"bob@sub.example.com", "[EMAIL]"},
		{"support@other.org and bob@other.org", "support@other.org and [EMAIL]"},
		{"127.0.0.1 and 127.0.0.2", "127.0.0.1 and [IP]"},
		{"password=127.0.0.1x", "password=[SECRET]"},
	} {
		if got := r.RedactText(tc.text); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
		}
	}
	m := r.StartMasking()
	if got, want := m.MaskText("bob@example.com 127.0.0.1 ann@other.org"), "bob@example.com 127.0.0.1 [EMAIL_1]"; got != want {
		t.Errorf("Mask: got %q, want %q", got, want)
	}
	m = r.StartMasking()
	m.MaskText("bob@example.com")
	if diff := cmp.Diff([]string{}, m.Kinds()); diff != "" {
		t.Errorf("kinds with an allowed value (-want +got):\n%s", diff)
	}
}

func TestNew_Rejects(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  redact.Config
		want string
	}{
		{"unknown kind", redact.Config{Kinds: []string{"email", "mail"}}, `redact: kinds: "mail" is no kind of text that is masked: card, cnpj, cpf, dni, email, iban, ip, nif, phone, secret, ssn`},
		{"kind in capitals", redact.Config{Kinds: []string{"IP"}}, `redact: kinds: "IP" is no kind of text that is masked: card, cnpj, cpf, dni, email, iban, ip, nif, phone, secret, ssn`},
		{"empty kind", redact.Config{Kinds: []string{""}}, `redact: kinds: "" is no kind of text that is masked: card, cnpj, cpf, dni, email, iban, ip, nif, phone, secret, ssn`},
		{"empty value", redact.Config{Allow: []string{"x", " "}}, `redact: allow[1]: " " is no value; leave it out`},
		{"every address", redact.Config{Allow: []string{"@"}}, `redact: allow[0]: "@" is no value; leave it out`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := redact.New(tc.cfg)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	want := []string{"card", "cnpj", "cpf", "dni", "email", "iban", "ip", "nif", "phone", "secret", "ssn"}
	if diff := cmp.Diff(want, redact.Kinds()); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	redact.Kinds()[0] = "changed" // belongs to the caller
	if diff := cmp.Diff(want, redact.Kinds()); diff != "" {
		t.Errorf("kinds, second call (-want +got):\n%s", diff)
	}
}

func TestMaskJSON(t *testing.T) {
	const raw = `{"mail":"bob@example.com","n":4111111111111111,"list":["10.0.0.7",null,true,"x"],"deep":{"password":"swordfish"},"10.0.0.8":"\u0062ob@example.com\n","phone": "467 3395"}`
	for _, tc := range []struct {
		name string
		want contract.DataClasses
		text string
	}{
		{"absent", nil, raw},
		{"all", contract.DataClasses{"all"}, raw},
		{
			"none",
			contract.DataClasses{"none"},
			`{"mail":"[EMAIL_1]","n":4111111111111111,"list":["[IP_1]",null,true,"x"],"deep":{"password":"[SECRET_1]"},"[IP_2]":"[EMAIL_1]\n","phone": "[PHONE_1]"}`,
		},
		{
			"one",
			contract.DataClasses{"email"},
			`{"mail":"bob@example.com","n":4111111111111111,"list":["[IP_1]",null,true,"x"],"deep":{"password":"[SECRET_1]"},"[IP_2]":"\u0062ob@example.com\n","phone": "[PHONE_1]"}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := redactor(t, redact.Config{}).StartMasking()
			if got := string(m.MaskJSON([]byte(raw), tc.want)); got != tc.text {
				t.Errorf("got  %s\nwant %s", got, tc.text)
			}
		})
	}
}

// Texts and JSON of a request share placeholders.
func TestMaskJSON_SharesPlaceholders(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	m.MaskText("ann@example.com, bob@example.com")
	got := string(m.MaskJSON([]byte(`["bob@example.com","eve@example.com","[EMAIL_9]"]`), contract.DataClasses{"ip"}))
	if want := `["[EMAIL_2]","[EMAIL_3]","[LITERAL_1]"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Unmasked values must not contain text that looks like a placeholder.
func TestMaskJSON_PlaceholdersInWantedKinds(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	got := string(m.MaskJSON([]byte(`"-----BEGIN PRIVATE KEY----- [EMAIL_1]"`), contract.DataClasses{"secret"}))
	if want := `"-----BEGIN PRIVATE KEY----- [LITERAL_1]"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMaskJSON_OtherValues(t *testing.T) {
	for _, raw := range []string{"", "null", "17", "[]", "{}", `""`, `"\""`, `"unterminated`, `"ends in \`, "\"", `{"a"`} {
		m := redactor(t, redact.Config{}).StartMasking()
		if got := string(m.MaskJSON([]byte(raw), contract.DataClasses{"none"})); got != raw {
			t.Errorf("%q: got %q", raw, got)
		}
	}
}

// Texts without values cause no allocation.
func TestMaskText_NoAllocationsWithoutValues(t *testing.T) {
	r := redactor(t, redact.Config{})
	m := r.StartMasking()
	for _, text := range []string{prose, "Revise este código e aponte o custo desnecessário.", strings.Repeat("x: y = 12:34 [a] ", 100)} {
		if n := testing.AllocsPerRun(20, func() { r.RedactText(text); m.MaskText(text) }); n != 0 {
			t.Errorf("%.40q: got %v allocations, want 0", text, n)
		}
	}
}

func TestPlaceholderKinds(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "[]",
		"[LITERAL_1] [OTHER_2] [": "[]",
		"mail [EMAIL_2], [EMAIL_1] and [PHONE_1]": "[email phone]",
	} {
		if got := fmt.Sprint(redact.PlaceholderKinds(text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
