package redaction_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/gateway/redaction"
	"github.com/caprouter/caprouter/internal/strictjson"
)

func TestRules_JSON(t *testing.T) {
	tests := []struct {
		name     string
		rule     redaction.Rule
		in, want string
	}{
		{"a path", redaction.Rule{Path: "/a/b"}, `{"a":{"b":1,"c":2},"b":3}`, `{"a":{"b":"<redacted>","c":2},"b":3}`},
		{"path with a wildcard", redaction.Rule{Path: "/list/*/id", Replace: "x"}, `{"list":[{"id":1},{"id":2,"n":3}]}`, `{"list":[{"id":"x"},{"id":"x","n":3}]}`},
		{"path with a slash", redaction.Rule{Path: "/a~1b"}, `{"a/b":{"c":1}}`, `{"a/b":"<redacted>"}`},
		{"a key", redaction.Rule{Key: "budget_id"}, `{"x":[{"Budget_ID":{"a":1}}],"y":"budget_id"}`, `{"x":[{"Budget_ID":"<redacted>"}],"y":"budget_id"}`},
		{"a pattern", redaction.Rule{Pattern: `BUD-\d+`, Replace: "$1"}, `["BUD-12 and BUD-13", 7]`, `["$1 and $1",7]`},
		{"pattern for numbers", redaction.Rule{Pattern: `^12345$`}, `[12345,123456]`, `["<redacted>",123456]`},
		{"JSON in a string", redaction.Rule{Key: "id"}, `[{"type":"text","text":"{\"id\": 7, \"n\": 1}"}]`, `[{"text":"{\"id\":\"<redacted>\",\"n\":1}","type":"text"}]`},
		{"path in JSON in a string", redaction.Rule{Path: "/id"}, `"{\"id\":7}"`, `"{\"id\":\"<redacted>\"}"`},
		{"personal data", redaction.Rule{Kinds: []string{"email"}}, `{"to":"bob@example.com"}`, `{"to":"[EMAIL_1]"}`},
		{"all kinds", redaction.Rule{Kinds: []string{"all"}}, `{"password":"hunter2-x9"}`, `{"password":"[SECRET_1]"}`},
		{"large numbers", redaction.Rule{Key: "x"}, `{"n":12345678901234567890}`, `{"n":12345678901234567890}`},
		{"duplicate name", redaction.Rule{Key: "x"}, `{"x":1,"x":2}`, `"<redacted>"`},
		{"too deep", redaction.Rule{Key: "x"}, strings.Repeat("[", 3) + strings.Repeat("]", 3), "[[[]]]"},
	}
	for _, tt := range tests {
		tt.rule.In = []string{redaction.Response}
		rules, err := redaction.Compile([]redaction.Rule{tt.rule})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, string(rules.JSON(redaction.Response, json.RawMessage(tt.in)))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", tt.name, diff)
		}
		if got := string(rules.JSON(redaction.Request, json.RawMessage(tt.in))); got != tt.in {
			t.Errorf("%s: got %s at another stage, want it unchanged", tt.name, got)
		}
	}
}

func TestRules_Text(t *testing.T) {
	rules, err := redaction.Compile([]redaction.Rule{{Pattern: "BUD-[0-9]+"}, {Kinds: []string{"email"}}, {Key: "id"}})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"":                               "",
		"BUD-7 of bob@example.com":       "<redacted> of [EMAIL]",
		`{"id":"x","note":"BUD-7 {..."}`: `{"id":"<redacted>","note":"<redacted> {..."}`,
		"{no JSON BUD-7":                 "{no JSON <redacted>",
	} {
		if got := rules.Text(redaction.Log, in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if none := new(redaction.Rules); none.Text(redaction.Log, "BUD-7") != "BUD-7" || none.Has(redaction.Log) {
		t.Error("got a text changed by empty rules, want it unchanged")
	}
}

func TestCompile_Errors(t *testing.T) {
	for want, rule := range map[string]redaction.Rule{
		"a rule needs one of path, key, pattern and kinds":                    {},
		"a rule needs one of path, key, pattern and kinds ":                   {Path: "/a", Key: "b"},
		`path "a" must begin with /`:                                          {Path: "a"},
		"pattern: error parsing regexp: missing closing ): `(`":               {Pattern: "("},
		`"audit" is no stage; known are request, response and log`:            {Key: "a", In: []string{"audit"}},
		"replace does not apply to kinds":                                     {Kinds: []string{"email"}, Replace: "x"},
		`redact: kinds: "mail" is no kind of text that is masked: card, cnpj`: {Kinds: []string{"mail"}},
	} {
		if _, err := redaction.Compile([]redaction.Rule{rule}); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%+v: got %v, want %s", rule, err, want)
		}
	}
}

// FuzzRules checks that any result stays JSON and contains no member that a rule names.
func FuzzRules(f *testing.F) {
	f.Add([]byte(`{"id":1,"list":[{"ID":"x"}],"text":"{\"id\":[2]}"}`))
	f.Add([]byte(`["a",null,1e400,{"":{}}]`))
	rules, err := redaction.Compile([]redaction.Rule{{Key: "id"}, {Path: "/list/*/n"}, {Pattern: "[0-9]+"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var valid json.RawMessage
		if strictjson.Unmarshal(data, &valid) != nil {
			return
		}
		out := rules.JSON(redaction.Log, data)
		var v any
		if err := strictjson.Unmarshal(out, &v); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		checkMembers(t, v)
		if twice := rules.JSON(redaction.Log, out); string(twice) != string(out) {
			t.Errorf("got %s, and %s after the second redaction", out, twice)
		}
	})
}

func checkMembers(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if strings.EqualFold(name, "id") && member != redaction.Placeholder {
				t.Errorf("got %v for %s, want it replaced", member, name)
			}
			checkMembers(t, member)
		}
	case []any:
		for _, item := range v {
			checkMembers(t, item)
		}
	}
}
