package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// Documents with a duplicate or misspelt member, which a lenient decoder accepts. The pointer names
// the invalid member.
func TestUnmarshal_RejectsAmbiguousNames(t *testing.T) {
	const dup, unknown, variant = "appears more than once", "unknown member", "only by case"
	type c struct{ body, pointer, detail string }
	request := func() any { return new(contract.Request) }
	result := func() any { return new(contract.Result) }
	entry := func() any { return new(contract.RegistryEntry) }

	groups := []struct {
		name   string
		decode func([]byte, any) error
		target func() any
		cases  []c
	}{
		{"own, duplicates", Unmarshal, request, []c{
			{`{"content":{"prompt":"a"},"content":{"prompt":"b"}}`, "/content", dup},
			{`{"content":{"prompt":"a","prompt":"b"}}`, "/content/prompt", dup},
			{`{"content":{"prompt":"a","prompt":"a"}}`, "/content/prompt", dup},
			{`{"content":{"prompt":"a","pr\u006fmpt":"b"}}`, "/content/prompt", dup},
			{`{"content":{"prompt":"a","\u0070\u0072\u006f\u006d\u0070\u0074":"b"}}`, "/content/prompt", dup},
			{`{"history":[{"role":"user","content":"a","role":"assistant"}]}`, "/history/0/role", dup},
			{`{"history":[],"session_id":"s","history":[]}`, "/history", dup},
			{`{"options":{"dry_run":false,"dry_run":true}}`, "/options/dry_run", dup},
			{`{"agent_id":null,"agent_id":"a"}`, "/agent_id", dup},
			{`{"metadata":{"locale":"en","locale":null}}`, "/metadata/locale", dup},
			{`{"clarification":{"option_id":"a","request_id":"r","option_id":"b"}}`, "/clarification/option_id", dup},
		}},
		{"own, duplicates in free-form data", Unmarshal, request, []c{
			{`{"content":{"inputs":{"a":1,"a":2}}}`, "/content/inputs/a", dup},
			{`{"content":{"inputs":{"a":1,"\u0061":2}}}`, "/content/inputs/a", dup},
			{`{"content":{"inputs":{"":1,"":2}}}`, "/content/inputs/", dup},
			{`{"content":{"inputs":{"a":{"b":1,"b":2}}}}`, "/content/inputs/a/b", dup},
			{`{"content":{"inputs":{"a":[0,{"b":{"c":1,"d":2,"c":3}}]}}}`, "/content/inputs/a/1/b/c", dup},
			{`{"content":{"inputs":{"a/b":{"~":1,"~":2}}}}`, "/content/inputs/a~1b/~0", dup},
			{`{"content":{"inputs":{"prompt":1,"prompt":2}}}`, "/content/inputs/prompt", dup},
			{`{"content":{"inputs":{"é":1,"\u00e9":2}}}`, "/content/inputs/é", dup},
		}},
		{"own, other case", Unmarshal, request, []c{
			{`{"Content":{"prompt":"a"}}`, "/Content", `unknown member "Content"; did you mean "content"?`},
			{`{"CONTENT":{"prompt":"a"}}`, "/CONTENT", unknown},
			{`{"content":{"Prompt":"a"}}`, "/content/Prompt", `did you mean "prompt"?`},
			{`{"content":{"prompt":"a","PROMPT":"b"}}`, "/content/PROMPT", unknown},
			{`{"content":{"PROMPT":"b","prompt":"a"}}`, "/content/PROMPT", unknown},
			{`{"SessionID":"s"}`, "/SessionID", `did you mean "session_id"?`},
			{`{"session-id":"s"}`, "/session-id", `did you mean "session_id"?`},
			{`{"ſession_id":"s"}`, "/ſession_id", `did you mean "session_id"?`},
			{`{"optionſ":{}}`, "/optionſ", `did you mean "options"?`},
			{`{"options":{"Dry_Run":true}}`, "/options/Dry_Run", `did you mean "dry_run"?`},
			{`{"history":[{"Role":"user"}]}`, "/history/0/Role", `did you mean "role"?`},
			{`{"metadata":{"LOCALE":"en"}}`, "/metadata/LOCALE", unknown},
			{`{" content":{}}`, "/ content", `did you mean "content"?`},
		}},
		{"result of an agent", Unmarshal, result, []c{
			{`{"status":"failure","status":"success"}`, "/status", dup},
			{`{"Status":"success"}`, "/Status", unknown},
			{`{"status":"success","data":{"answer":"a","answer":"b"}}`, "/data/answer", dup},
			{`{"status":"success","metrics":{"tokens":1,"tokens":2}}`, "/metrics/tokens", dup},
			{`{"status":"success","taſk_id":"t"}`, "/taſk_id", unknown},
		}},
		{"registry entry", Unmarshal, entry, []c{
			{`{"match":{"intent":["a"],"INTENT":["b"]}}`, "/match/INTENT", unknown},
			{`{"match":{"domains":[],"domainſ":[]}}`, "/match/domainſ", unknown},
			{`{"examples":{"a":["x"],"a":["y"]}}`, "/examples/a", dup},
		}},
		{"foreign", UnmarshalAllowUnknown, func() any { return new(claims) }, []c{
			{`{"sub":"a","sub":"b"}`, "/sub", dup},
			{`{"sub":"a","\u0073ub":"b"}`, "/sub", dup},
			{`{"other":1,"other":2}`, "/other", dup},
			{`{"other":{"a":[{"b":1,"b":2}]}}`, "/other/a/0/b", dup},
			{`{"SUB":"a"}`, "/SUB", `name "SUB" differs from "sub" only by case`},
			{`{"sub":"a","Sub":"b"}`, "/Sub", variant},
			{`{"ſub":"a"}`, "/ſub", variant},
			{`{"EXP":99999999999}`, "/EXP", variant},
			{`{"act":{"sub":"a","sUb":"b"}}`, "/act/sUb", variant},
			{`{"act":{"act":{"Iss":"a"}}}`, "/act/act/Iss", variant},
		}},
	}
	total := 0
	for _, g := range groups {
		for i, tt := range g.cases {
			total++
			t.Run(fmt.Sprintf("%s/%d", g.name, i), func(t *testing.T) {
				err := g.decode([]byte(tt.body), g.target())
				got, ok := errors.AsType[*Error](err)
				if !ok {
					t.Fatalf("%s: got error %v, want one at %s", tt.body, err, tt.pointer)
				}
				if got.Pointer != tt.pointer || !strings.Contains(got.Detail, tt.detail) || got.Syntax {
					t.Errorf("%s: got %+v, want pointer %q and detail …%s…, not as a syntax error", tt.body, *got, tt.pointer, tt.detail)
				}
			})
		}
	}
	if total < 40 {
		t.Errorf("got %d cases, want at least 40", total)
	}
}

func TestUnmarshalAllowUnknown_AcceptsUnknownNames(t *testing.T) {
	for _, tt := range []struct{ name, body string }{
		{"unknown names", `{"sub":"a","custom":{"Sub":1,"sub":2}}`},
		{"unknown names that differ by case among themselves", `{"x":1,"X":2}`},
		{"null counts as absent", `{"sub":null,"exp":null,"domains":null,"act":null}`},
		{"free-form values", `{"aud":{"SUB":1,"sub":[null]}}`},
		{"underscores are not case", `{"s_u_b":"a"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c claims
			if err := UnmarshalAllowUnknown([]byte(tt.body), &c); err != nil {
				t.Errorf("UnmarshalForeign(%s): got error %v, want none", tt.body, err)
			}
		})
	}
}

func TestUnmarshalAllowUnknown_RejectsAmbiguousDocuments(t *testing.T) {
	tests := []struct {
		name, body string
		want       Error
	}{
		{"trailing text", `{"sub":"a"}x`, Error{Detail: "is not JSON: invalid character 'x' after top-level value at line 1, column 12", Syntax: true}},
		{"wrong type", `{"exp":"soon"}`, Error{Pointer: "/exp", Detail: "must be a whole number, got a string"}},
		{"invalid UTF-8 in an unknown member", "{\"x\":\"\xff\"}", Error{Pointer: "/x", Detail: "is not JSON: invalid UTF-8 at line 1, column 7", Syntax: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkError(t, UnmarshalAllowUnknown([]byte(tt.body), new(claims)), tt.want)
		})
	}
}

// Members of an embedded struct are members of the outer object.
func TestUnmarshal_EmbeddedStructs(t *testing.T) {
	var d contract.ResponseData
	if err := UnmarshalAllowUnknown([]byte(`{"mode":"unsupported","reason":"no_match","nearest":[{"gates":[]}]}`), &d); err != nil {
		t.Fatalf("got error %v, want none", err)
	}
	if d.Unsupported == nil || d.Reason != "no_match" {
		t.Errorf("got %+v, want the embedded members decoded", d)
	}
	checkError(t, UnmarshalAllowUnknown([]byte(`{"REASON":"x"}`), new(contract.ResponseData)),
		Error{Pointer: "/REASON", Detail: `name "REASON" differs from "reason" only by case`})
	checkError(t, Unmarshal([]byte(`{"nearest":[{"score":null}]}`), new(contract.ResponseData)),
		Error{Pointer: "/nearest/0/score", Detail: "must be a number, got null"})
}

func TestFoldCase_MatchesEqualFold(t *testing.T) {
	names := []string{"k", "K", "\u212a", "s", "S", "ſ", "é", "É", "ß", "ẞ", "Σ", "σ", "ς", "a_b", "A_B", "ab", "İ", "i", "I", "ı", ""}
	for _, a := range names {
		for _, b := range names {
			if got, want := foldCase(a) == foldCase(b), strings.EqualFold(a, b); got != want {
				t.Errorf("fold(%q) == fold(%q): got %v, want %v", a, b, got, want)
			}
		}
	}
}

// encoding/json accepts all of these documents, so it is not used.
func TestUnmarshal_IsStricterThanStandardLibrary(t *testing.T) {
	for _, body := range []string{`{"status":"failure","status":"success"}`, `{"STATUS":"success"}`, `{"ſtatus":"success"}`, `{"status":null}`} {
		if err := json.Unmarshal([]byte(body), new(contract.Result)); err != nil {
			t.Errorf("encoding/json on %s: got %v, want it accepted, because this test compares with it", body, err)
		}
		if err := Unmarshal([]byte(body), new(contract.Result)); err == nil {
			t.Errorf("Unmarshal(%s): got no error, want one", body)
		}
	}
}
