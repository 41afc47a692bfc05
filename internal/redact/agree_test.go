package redact_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/redact"
)

// Different ways of masking must give the same result.

var numbered = regexp.MustCompile(`\[(EMAIL|PHONE|CARD|IBAN|IP|CPF|CNPJ|NIF|DNI|SSN|SECRET)_[0-9]+\]`)

// RedactText masks the same values as MaskText.
func TestRedactText_AgreesWithMaskText(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Filter(func(s string) bool { return !numbered.MatchString(s) }).Draw(t, "text")
		masked := r.StartMasking().MaskText(text)
		if strings.Contains(masked, "[LITERAL_") {
			t.Skip("RedactText does not mask text that looks like a placeholder")
		}
		if got, want := r.RedactText(text), numbered.ReplaceAllString(masked, "[$1]"); got != want {
			t.Fatalf("%q: got %q from RedactText, want %q as from MaskText", text, got, masked)
		}
	})
}

// A kind that is not selected is not found, and Kinds lists the placeholders of the text.
func TestFindValues_OnlySelectedKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asked := rapid.SliceOfNDistinct(rapid.SampledFrom(redact.Kinds()), 0, 3, rapid.ID[string]).Draw(t, "kinds")
		r, err := redact.New(redact.Config{Kinds: asked})
		if err != nil {
			t.Fatal(err)
		}
		text := texts().Draw(t, "text")
		m := r.StartMasking()
		masked := m.MaskText(text)
		found := m.Kinds()
		for _, kind := range found {
			if !slices.Contains(asked, kind) {
				t.Fatalf("%q: got %q found, selected %v", text, kind, asked)
			}
			if !strings.Contains(masked, "["+strings.ToUpper(kind)+"_1]") {
				t.Fatalf("%q: got %q found, which is not in %q", text, kind, masked)
			}
		}
		if masked == text && len(found) > 0 {
			t.Fatalf("%q: got %v found, and no text masked", text, found)
		}
	})
}

// A JSON string without a member name is masked like text.
func TestMaskJSON_AgreesWithMaskText(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		raw, err := json.Marshal([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &[]*string{&text}); err != nil { // invalid UTF-8 was replaced
			t.Fatal(err)
		}
		var got []string
		if err := json.Unmarshal(r.StartMasking().MaskJSON(raw, none), &got); err != nil {
			t.Fatal(err)
		}
		if want := r.StartMasking().MaskText(text); got[0] != want {
			t.Fatalf("%q: got %q from JSON, want %q as from MaskText", text, got[0], want)
		}
	})
}

// A member alone is masked in the same way as in its object.
func TestMaskMember_AgreesWithMaskJSON(t *testing.T) {
	r := redactor(t, redact.Config{})
	names := []string{"password", "token", "phone", "note", "Cookie", "Authorization", "bob@example.com"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		values := rapid.SliceOfN(texts(), 0, 3).Draw(t, "values")
		raw, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		hidden, masked := r.StartMasking().MaskMember(name, raw, none)
		object, err := json.Marshal(map[string]json.RawMessage{name: raw})
		if err != nil {
			t.Fatal(err)
		}
		var want map[string][]string
		if err := json.Unmarshal(r.StartMasking().MaskJSON(object, none), &want); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := json.Unmarshal(masked, &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want[hidden]) {
			t.Fatalf("%s: got %q alone, want %q as in its object", name, got, want)
		}
	})
}

// Inputs of several agents are masked concurrently: a value keeps its placeholder.
func TestMaskMember_Concurrent(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	m.MaskText("bob@example.com")
	const raw = `{"password":"hunter2 [EMAIL_1]","to":["bob@example.com","ann@example.com"]}`
	got := make([]string, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for range 50 {
				name, masked := m.MaskMember("eve@example.com", []byte(raw), none)
				got[i] = name + string(masked)
				if back := m.RestoreText(name, nil); back != "eve@example.com" {
					t.Errorf("put back: got %q", back)
				}
			}
		})
	}
	wg.Wait()
	for i := range got {
		if want := `[EMAIL_2]{"password":"[SECRET_1]","to":["[EMAIL_1]","[EMAIL_3]"]}`; got[i] != want {
			t.Errorf("got %s, want %s", got[i], want)
		}
	}
}
