package redact_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

// pieces are the parts of generated texts: values of every kind, parts of them, separators and
// unknown placeholders.
var pieces = []string{
	"bob@example.com", "Ana.Silva+x@mail.example.com.br", "josé@exämple.org", "用户@例子.公司", "git@github.com:a/b", "@", "a@b", ".com",
	"4111 1111 1111 1111", "4111111111111111", "378282246310005", "4111", "1111", "5", "0",
	"+1 415 555 0132", "(415) 555-0132", "11 98456-5666", "call", "tel", "415-555-0132", "x12", "ext. 3", "order",
	"DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "DE89", "gb82west12345698765432",
	"192.168.1.17", "10.0.0.0/8", "2001:db8::1", "::1", "fe80::1%eth0", "1.2.3.4-rc1", "::", "12:34:56", "version",
	"password=hunter22", `"api_key": "abcd1234efgh"`, "token:", "my password is Tr0ub4dor", "Bearer abcdef0123456789ABCDEF", "sk-abcdefghij0123456789klmn",
	"ghp_0123456789abcdefghijklmnopqrstuvwxyzAB", "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
	"postgres://bob:s3cret@db.example.com/x", "://", "user:pass",
	"[EMAIL_1]", "[EMAIL_2]", "[LITERAL_1]", "[PHONE_", "[", "]", "_1]", "[CARD_4111]", "[EMAIL_999999]",
	" ", "  ", "-", ".", ":", "/", "=", "\"", "'", "\n", "\t", "a", "Z", "9", "_", "é", "是", "\u200b", "\u00a0", "１２３", "＠", "٠١٢", "\ufeff", "😀", "\\", "x", "+", "(", ")",
}

func texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12), func(p []string) string { return strings.Join(p, "") }),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12), func(p []string) string { return strings.Join(p, " ") }),
		rapid.StringMatching(`[ -~]{0,60}`),
		rapid.StringMatching(`([0-9]{1,5}[ .:@-]?){0,12}`),
		rapid.String(),
	)
}

// Masked texts of a request can be restored.
func TestRestoreText_UndoesMaskText(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(texts(), 1, 4).Draw(t, "texts")
		m := r.StartMasking()
		masked := make([]string, len(all))
		for i, text := range all {
			masked[i] = m.MaskText(text)
		}
		for i, text := range all {
			for _, want := range []contract.DataClasses{nil, {"all"}} {
				if got := m.RestoreText(masked[i], want); got != text {
					t.Fatalf("got %q, want %q; masked %q", got, text, masked[i])
				}
			}
			if got := m.RestoreText(masked[i], contract.DataClasses{"none"}); got != masked[i] {
				t.Fatalf("restore none: got %q, want %q", got, masked[i])
			}
		}
	})
}

// A masked text contains no value to mask.
func TestMaskText_IsComplete(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		masked := r.StartMasking().MaskText(text)
		again := r.StartMasking()
		again.MaskText(masked)
		if left := again.Kinds(); len(left) > 0 {
			t.Fatalf("%q → %q: got %v in it", text, masked, left)
		}
		if plain := r.RedactText(text); plain != r.RedactText(plain) {
			t.Fatalf("Text(%q): got %q, then %q", text, plain, r.RedactText(plain))
		}
	})
}

// Equal values have equal placeholders, different values different ones, and masking is
// deterministic.
func TestMaskText_PlaceholdersAreStable(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		one, two := texts().Draw(t, "one"), texts().Draw(t, "two")
		m, n := r.StartMasking(), r.StartMasking()
		a, b := m.MaskText(one), m.MaskText(two)
		if again := m.MaskText(one); again != a {
			t.Fatalf("masked again: got %q, want %q", again, a)
		}
		if c, d := n.MaskText(one), n.MaskText(two); a != c || b != d || !slices.Equal(m.Kinds(), n.Kinds()) {
			t.Fatalf("another request: got %q and %q, want %q and %q", c, d, a, b)
		}
	})
}

// Masked JSON is valid, and its strings can be restored.
func TestMaskJSON_KeepsStructure(t *testing.T) {
	r := redactor(t, redact.Config{})
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.MapOfN(texts(), rapid.SliceOfN(texts(), 0, 3), 0, 4).Draw(t, "value")
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		want := contract.DataClasses(rapid.SliceOfDistinct(rapid.SampledFrom(redact.Kinds()), func(k string) string { return k }).Draw(t, "want"))
		if len(want) == 0 {
			want = contract.DataClasses{"none"}
		}
		m := r.StartMasking()
		var got map[string][]string
		if err := json.Unmarshal(m.MaskJSON(raw, want), &got); err != nil {
			t.Fatalf("got invalid JSON: %v", err)
		}
		back := map[string][]string{}
		for name, list := range got {
			for i := range list {
				list[i] = m.RestoreText(list[i], nil)
			}
			back[m.RestoreText(name, nil)] = list
		}
		if len(back) != len(in) {
			t.Fatalf("got %d members, want %d", len(back), len(in))
		}
		for name, list := range in {
			if !slices.Equal(back[name], list) {
				t.Fatalf("%q: got %q, want %q", name, back[name], list)
			}
		}
	})
}

// FuzzMask checks the properties above for any bytes.
func FuzzMask(f *testing.F) {
	for _, p := range pieces {
		f.Add(p, "mail bob@example.com")
	}
	f.Add("\xff\xfe bob@example.com \xc3", "[EMAIL_1] and 4111 1111 1111 1111")
	r, err := redact.New(redact.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		m := r.StartMasking()
		a, b := m.MaskText(one), m.MaskText(two)
		if got := m.RestoreText(a, nil); got != one {
			t.Errorf("first: got %q, want %q; masked %q", got, one, a)
		}
		if got := m.RestoreText(b, nil); got != two {
			t.Errorf("second: got %q, want %q; masked %q", got, two, b)
		}
		if utf8.ValidString(one) && !utf8.ValidString(a) {
			t.Errorf("%q: got invalid UTF-8: %q", one, a)
		}
		again := r.StartMasking()
		again.MaskText(a)
		if left := again.Kinds(); len(left) > 0 {
			t.Errorf("%q → %q: got %v in it", one, a, left)
		}
	})
}

// FuzzJSON checks that JSON stays valid and can be restored.
func FuzzJSON(f *testing.F) {
	for _, p := range pieces {
		q, err := json.Marshal(map[string]string{p: "password", "password": p, "mail": "bob@example.com" + p})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(q)
	}
	f.Add([]byte(`{"a\u0022b":["\ud83d\ude00 bob@example.com",1e9,{"tel":" 467 3395 "}]}`))
	f.Add([]byte(`"unterminated \`))
	r, err := redact.New(redact.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := r.StartMasking()
		masked := m.MaskJSON(raw, contract.DataClasses{"none"})
		if !json.Valid(raw) {
			return
		}
		if !json.Valid(masked) {
			t.Fatalf("%q: got invalid JSON: %q", raw, masked)
		}
		again := m.MaskJSON(raw, contract.DataClasses{"none"})
		if string(again) != string(masked) {
			t.Errorf("masked again: got %q, want %q", again, masked)
		}
	})
}
