package redact_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

var none = contract.DataClasses{"none"}

// The name of a member determines the kind of its whole value.
func TestMaskMember_UsesName(t *testing.T) {
	for _, tc := range []struct{ name, member, raw, want string }{
		{"password", "password", `"hunter2abc9"`, `"[SECRET_1]"`},
		{"short", "password", `"a"`, `"[SECRET_1]"`},
		{"letters alone", "dbPassword", `"swordfish"`, `"[SECRET_1]"`},
		{"words", "passphrase", `"correct horse battery staple"`, `"[SECRET_1]"`},
		{"with a quote", "password", `"abc\"def123secret"`, `"[SECRET_1]"`},
		{"with a line", "password", `"abc\ndef123"`, `"[SECRET_1]"`},
		{"with a mark of templates", "password", `"Pa$$w0rd9x"`, `"[SECRET_1]"`},
		{"with an address", "password", `"bob@example.com"`, `"[SECRET_1]"`},
		{"full width", "ｐａｓｓｗｏｒｄ", `"y"`, `"[SECRET_1]"`},
		{"with a colon", "Password:", `"hunter2"`, `"[SECRET_1]"`},
		{"long name", strings.Repeat("of_the_", 40) + "password", `"hunter2"`, `"[SECRET_1]"`},
		{"long name, not ASCII", strings.Repeat("é", 99) + ".password", `"hunter2"`, `"[SECRET_1]"`},
		{"array", "password", `["a","b",["a"]]`, `["[SECRET_1]","[SECRET_2]",["[SECRET_1]"]]`},
		{"array with others", "passwords", `[1,null,"a"]`, `[1,null,"[SECRET_1]"]`},
		{"object with its own names", "password", `{"hint":"my dog","password":"rex"}`, `{"hint":"my dog","password":"[SECRET_1]"}`},
		{"behind an array", "x", `{"password":["a"],"b":"c"}`, `{"password":["[SECRET_1]"],"b":"c"}`},
		{"behind an object", "password", `[{"x":"y"},"a"]`, `[{"x":"y"},"[SECRET_1]"]`},
		{"key", "api_key", `"s3cr3tVal9"`, `"[SECRET_1]"`},
		{"keys", "tokens", `{"token":["s3cr3tVal9","word"]}`, `{"token":["[SECRET_1]","word"]}`},
		{"cookie", "Cookie", `"theme=dark; session=abc"`, `"[SECRET_1]"`},
		{"authorization", "Authorization", `"Bearer abcdefgh"`, `"Bearer [SECRET_1]"`},
		{"phone", "phone", `["467 3395","555 0132"]`, `["[PHONE_1]","[PHONE_2]"]`},
		{"far from its name", "x", `{"password"` + strings.Repeat(" ", 200) + `: "a"}`, `{"password"` + strings.Repeat(" ", 200) + `: "[SECRET_1]"}`},

		{"number", "password", `12345678`, `12345678`},
		{"nothing", "password", `""`, `""`},
		{"blank", "password", `" "`, `" "`},
		{"template", "password", `"${DB_PASSWORD}"`, `"${DB_PASSWORD}"`},
		{"filler", "password", `["string","null"]`, `["string","null"]`},
		{"other name", "note", `"hunter2abc9"`, `"hunter2abc9"`},
		{"count", "max_tokens", `"8000"`, `"8000"`},
		{"sentence about a token", "token", `"the 3rd of the line"`, `"the 3rd of the line"`},
		{"cookie, a word", "cookie", `"chocolate"`, `"chocolate"`},
		{"closed too often", "x", `]}"a"`, `]}"a"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := redactor(t, redact.Config{}).StartMasking()
			name, got := m.MaskMember(tc.member, []byte(tc.raw), none)
			if name != tc.member || string(got) != tc.want {
				t.Errorf("got %s: %s, want %s: %s", name, got, tc.member, tc.want)
			}
			if back := unquoteAll(m.RestoreText(string(got), nil)); back != unquoteAll(tc.raw) {
				t.Errorf("put back: got %s, want %s", back, tc.raw)
			}
			// The same inside an object.
			q, err := json.Marshal(tc.member)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(m.MaskJSON([]byte(`{`+string(q)+`:`+tc.raw), none)); got != `{`+string(q)+`:`+tc.want {
				t.Errorf("in an object: got %s, want it with %s", got, tc.want)
			}
		})
	}
}

// unquoteAll removes escapes, because a value inserted into JSON text is not escaped.
func unquoteAll(s string) string {
	return strings.NewReplacer(`\"`, `"`, `\n`, "\n").Replace(s)
}

func TestMaskMember_KeepsWantedKinds(t *testing.T) {
	const name, raw = "alice@example.com", `{"password":"hunter2 [EMAIL_1]","from":"10.0.0.7"}`
	for _, tc := range []struct {
		want           contract.DataClasses
		name, asMasked string
	}{
		{nil, name, raw},
		{contract.DataClasses{"all"}, name, raw},
		{none, "[EMAIL_1]", `{"password":"[SECRET_1]","from":"[IP_1]"}`},
		{contract.DataClasses{"email"}, name, `{"password":"[SECRET_1]","from":"[IP_1]"}`},
		{contract.DataClasses{"secret"}, "[EMAIL_1]", `{"password":"hunter2 [LITERAL_1]","from":"[IP_1]"}`},
		{contract.DataClasses{"secret", "ip"}, "[EMAIL_1]", `{"password":"hunter2 [LITERAL_1]","from":"10.0.0.7"}`},
	} {
		t.Run(fmt.Sprint(tc.want), func(t *testing.T) {
			m := redactor(t, redact.Config{}).StartMasking()
			gotName, got := m.MaskMember(name, []byte(raw), tc.want)
			if gotName != tc.name || string(got) != tc.asMasked {
				t.Errorf("got %s: %s, want %s: %s", gotName, got, tc.name, tc.asMasked)
			}
		})
	}
}

// Values of kinds that are not selected, and allowed values, are not masked, even under names of
// secrets.
func TestMaskMember_Configuration(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  redact.Config
		want string
	}{
		{"all", redact.Config{}, `"[SECRET_1]"`},
		{"no secrets", redact.Config{Kinds: []string{redact.Email}}, `"[EMAIL_1]"`},
		{"nothing", redact.Config{Kinds: []string{}}, `"bob@example.com"`},
		{"allowed", redact.Config{Allow: []string{"BOB@example.com"}}, `"bob@example.com"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := redactor(t, tc.cfg).StartMasking()
			if _, got := m.MaskMember("password", []byte(`"bob@example.com"`), none); string(got) != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Different member names stay different when masked, and can be restored.
func TestMaskMember_NamesStayDifferent(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.MapOfN(texts(), texts(), 0, 6).Draw(t, "members")
		want := contract.DataClasses{rapid.SampledFrom(append(redact.Kinds(), "none")).Draw(t, "want")}
		m := r.StartMasking()
		got := map[string]json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(in)) {
			raw, err := json.Marshal(in[name])
			if err != nil {
				t.Fatal(err)
			}
			hidden, masked := m.MaskMember(name, raw, want)
			got[hidden] = masked
		}
		if len(got) != len(in) {
			t.Fatalf("got %d members, want %d: %q", len(got), len(in), slices.Sorted(maps.Keys(got)))
		}
		back := map[string]string{}
		for name, raw := range got {
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatalf("%s: got invalid JSON string: %v", raw, err)
			}
			back[m.RestoreText(name, nil)] = m.RestoreText(s, nil)
		}
		if diff := cmp.Diff(in, back); diff != "" {
			t.Fatalf("restored (-want +got):\n%s", diff)
		}
	})
}

// A password under its name is masked in arrays of any depth.
func TestMaskMember_MasksEveryPassword(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		password := "q" + rapid.StringMatching(`[ -~\n\t]{3,30}`).Draw(t, "password") + "z"
		name := rapid.SampledFrom([]string{"password", "db_password", "userPassword", "pwd", "passphrase", "senha"}).Draw(t, "name")
		var value any = password
		for range rapid.IntRange(0, 3).Draw(t, "arrays") {
			value = []any{value, 1}
		}
		raw, err := json.Marshal(map[string]any{"note": "hello", name: value})
		if err != nil {
			t.Fatal(err)
		}
		quoted, err := json.Marshal(password)
		if err != nil {
			t.Fatal(err)
		}
		masked := string(r.StartMasking().MaskJSON(raw, none))
		if !strings.Contains(masked, `"[SECRET_1]"`) || strings.Contains(masked, string(quoted[1:len(quoted)-1])) {
			t.Fatalf("%s: got %s", raw, masked)
		}
	})
}

// A value restored next to other placeholders must not contain text that looks like one, because
// the answer is restored again for the caller.
func TestRestoreText_MasksPlaceholdersInValues(t *testing.T) {
	m := redactor(t, redact.Config{}).StartMasking()
	const text = "-----BEGIN PRIVATE KEY----- [EMAIL_1] -----END PRIVATE KEY----- bob@example.com"
	masked := m.MaskText(text)
	if want := "[SECRET_1] [EMAIL_1]"; masked != want {
		t.Fatalf("masked: got %q, want %q", masked, want)
	}
	for _, tc := range []struct {
		want contract.DataClasses
		text string
	}{
		{nil, text},
		{none, masked},
		{contract.DataClasses{"email"}, "[SECRET_1] bob@example.com"},
		{contract.DataClasses{"secret"}, "-----BEGIN PRIVATE KEY----- [LITERAL_1] -----END PRIVATE KEY----- [EMAIL_1]"},
		{contract.DataClasses{"secret", "email"}, "-----BEGIN PRIVATE KEY----- [LITERAL_1] -----END PRIVATE KEY----- bob@example.com"},
	} {
		t.Run(fmt.Sprint(tc.want), func(t *testing.T) {
			got := m.RestoreText(masked, tc.want)
			if got != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
			if back := m.RestoreText(got, nil); tc.want != nil && back != text {
				t.Errorf("and then all of it: got %q, want %q", back, text)
			}
		})
	}
}

// After restoring some kinds, the others can be restored later.
func TestRestoreText_InSteps(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		m := r.StartMasking()
		masked := m.MaskText(text)
		want := contract.DataClasses(rapid.SliceOfNDistinct(rapid.SampledFrom(redact.Kinds()), 1, 4, rapid.ID[string]).Draw(t, "kinds"))
		part := m.RestoreText(masked, want)
		if got := m.RestoreText(part, nil); got != text {
			t.Fatalf("%q → %q → %v %q: got %q, want the first", text, masked, want, part, got)
		}
	})
}
