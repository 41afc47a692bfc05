package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestUnmarshal_AcceptsValidDocuments(t *testing.T) {
	tests := []struct {
		name, body string
		want       contract.Request
	}{
		{
			"required member only",
			`{"content":{"prompt":"hi"}}`,
			contract.Request{Content: contract.Content{Prompt: "hi"}},
		},
		{
			"white space and escapes",
			"\n\t{ \"content\" : {\"pr\\u006fmpt\":\"h\\u00e9\\n\"} }\r\n",
			contract.Request{Content: contract.Content{Prompt: "hé\n"}},
		},
		{
			"free-form inputs keep null and any spelling",
			`{"content":{"prompt":"x","inputs":{"a":null,"A":{"b":[null],"B":1e400}}}}`,
			contract.Request{Content: contract.Content{Prompt: "x", Inputs: map[string]json.RawMessage{
				"a": json.RawMessage(`null`), "A": json.RawMessage(`{"b":[null],"B":1e400}`),
			}}},
		},
		{
			"null where the type is a pointer",
			`{"content":{"prompt":"x"},"agent_id":null,"clarification":null,"options":{"fallback":null}}`,
			contract.Request{Content: contract.Content{Prompt: "x"}},
		},
		{
			"word null inside a string",
			`{"content":{"prompt":"null and nullable"}}`,
			contract.Request{Content: contract.Content{Prompt: "null and nullable"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got contract.Request
			if err := Unmarshal([]byte(tt.body), &got); err != nil {
				t.Fatalf("Unmarshal(%s): got error %v, want none", tt.body, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Unmarshal(%s) (-want +got):\n%s", tt.body, diff)
			}
		})
	}
}

func TestUnmarshal_RejectsInvalidDocuments(t *testing.T) {
	tests := []struct {
		name, body string
		want       Error // Offset is compared if it is not 0
	}{
		{"nothing", "", Error{Detail: "is not JSON: it is empty", Syntax: true}},
		{"only white space", " \n", Error{Detail: "is not JSON: it is empty", Syntax: true}},
		{"text instead of JSON", "review this", Error{
			Detail: "is not JSON: invalid character 'r' at start of value at line 1, column 1", Syntax: true,
		}},
		{"cut off", `{"content":{"prompt":"x"`, Error{
			Pointer: "/content", Detail: "is not JSON: the text ends too early at line 1, column 25", Syntax: true, Offset: 24,
		}},
		{"cut off inside a word", `tru`, Error{
			Detail: "is not JSON: the text ends too early at line 1, column 4", Syntax: true, Offset: 3,
		}},
		{"single quotes, line and column counted in characters", "{\"content\":\n  {\"prompt\":\"é\", 'a':1}}", Error{
			Pointer: "/content", Detail: `is not JSON: invalid character '\'' at start of value at line 2, column 18`, Syntax: true,
		}},
		{"trailing text", `{"content":{"prompt":"x"}} x`, Error{
			Detail: "is not JSON: invalid character 'x' after top-level value at line 1, column 28", Syntax: true, Offset: 27,
		}},
		{"second document", "{}\n{}", Error{
			Detail: "is not JSON: invalid character '{' after top-level value at line 2, column 1", Syntax: true, Offset: 3,
		}},
		{"trailing NUL", "{}\x00", Error{
			Detail: `is not JSON: invalid character '\x00' after top-level value at line 1, column 3`, Syntax: true,
		}},
		{"byte order mark", "\ufeff{}", Error{
			Detail: "is not JSON: it starts with a byte order mark; send plain UTF-8", Syntax: true,
		}},
		{"UTF-16", "{\x00}\x00", Error{
			Detail: "is not JSON: it looks like UTF-16 or UTF-32; send plain UTF-8", Syntax: true,
		}},
		{"UTF-16 with a byte order mark", "\xff\xfe{\x00}\x00", Error{
			Detail: "is not JSON: it looks like UTF-16 or UTF-32; send plain UTF-8", Syntax: true,
		}},
		{"invalid UTF-8 in a string", "{\"session_id\":\"\xff\"}", Error{
			Pointer: "/session_id", Detail: "is not JSON: invalid UTF-8 at line 1, column 16", Syntax: true,
		}},
		{"invalid UTF-8 in free-form data", "{\"content\":{\"prompt\":\"x\",\"inputs\":{\"a\":\"\xc3\"}}}", Error{
			Pointer: "/content/inputs/a", Detail: "is not JSON: invalid UTF-8 at line 1, column 41", Syntax: true,
		}},
		{"half a surrogate pair", `{"session_id":"\ud800"}`, Error{
			Pointer: "/session_id", Detail: "is not JSON: invalid surrogate pair `\\ud800\"}` in string at line 1, column 16", Syntax: true,
		}},

		{"another type", `{"content":{"prompt":1}}`, Error{Pointer: "/content/prompt", Detail: "must be a string, got a number"}},
		{"object wanted", `{"content":"x"}`, Error{Pointer: "/content", Detail: "must be an object, got a string"}},
		{"array wanted", `{"history":{}}`, Error{Pointer: "/history", Detail: "must be an array, got an object"}},
		{"inside an array", `{"history":[{"role":"user"},{"role":[]}]}`, Error{Pointer: "/history/1/role", Detail: "must be a string, got an array"}},
		{"boolean wanted", `{"options":{"dry_run":"true"}}`, Error{Pointer: "/options/dry_run", Detail: "must be true or false, got a string"}},
		{"boolean given", `{"session_id":true}`, Error{Pointer: "/session_id", Detail: "must be a string, got a boolean"}},
		{"object wanted at the top", `[]`, Error{Detail: "must be an object, got an array"}},
		{"fraction for an integer", `{"options":{"timeout_ms":1.5}}`, Error{Pointer: "/options/timeout_ms", Detail: "must be a whole number, got 1.5"}},
		{"exponent for an integer", `{"options":{"timeout_ms":1e3}}`, Error{Pointer: "/options/timeout_ms", Detail: "must be a whole number, got 1e3"}},
		{"integer out of range", `{"options":{"timeout_ms":99999999999999999999}}`, Error{Pointer: "/options/timeout_ms", Detail: "is out of range: 99999999999999999999"}},

		{"null for a string", `{"content":{"prompt":null}}`, Error{Pointer: "/content/prompt", Detail: "must be a string, got null"}},
		{"null for an object", `{"content":null}`, Error{Pointer: "/content", Detail: "must be an object, got null"}},
		{"null for a map", `{"content":{"prompt":"x","inputs":null}}`, Error{Pointer: "/content/inputs", Detail: "must be an object, got null"}},
		{"null for an array", `{"history":null}`, Error{Pointer: "/history", Detail: "must be an array, got null"}},
		{"null in an array", `{"history":[{"role":"user","content":"x"},null]}`, Error{Pointer: "/history/1", Detail: "must be an object, got null"}},
		{"null for a number", `{"options":{"timeout_ms":null}}`, Error{Pointer: "/options/timeout_ms", Detail: "must be a whole number, got null"}},
		{"null inside a pointer's object", `{"clarification":{"request_id":null}}`, Error{Pointer: "/clarification/request_id", Detail: "must be a string, got null"}},
		{"null as the document", `null`, Error{Detail: "must be an object, got null"}},

		{"member of an inner object", `{"prompt":"x"}`, Error{Pointer: "/prompt", Detail: `unknown member "prompt"; it belongs in "content"`}},
		{"unknown member", `{"content":{"promt":"x"}}`, Error{Pointer: "/content/promt", Detail: `unknown member "promt"; known here: prompt, inputs`}},
		{"Go name of a member that is not decoded", `{"RequestID":"x"}`, Error{
			Pointer: "/RequestID",
			Detail:  `unknown member "RequestID"; known here: content, history, metadata, session_id, agent_id, clarification, options`,
		}},
		{"pointer escapes", `{"a/b~c":1}`, Error{
			Pointer: "/a~1b~0c",
			Detail:  `unknown member "a/b~c"; known here: content, history, metadata, session_id, agent_id, clarification, options`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r contract.Request
			checkError(t, Unmarshal([]byte(tt.body), &r), tt.want)
		})
	}
}

func checkError(t *testing.T, err error, want Error) {
	t.Helper()
	got, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got error %v (%T), want *Error %q", err, err, want.Detail)
	}
	g := *got
	if want.Offset == 0 {
		g.Offset = 0
	}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestUnmarshal_SupportsOtherTypes(t *testing.T) {
	type tree struct {
		Name     string           `json:"name"`
		Children []tree           `json:"children"`
		ByName   map[string]*tree `json:"by_name"`
	}
	type odd struct {
		Any     any               `json:"any"`
		Float   float64           `json:"float"`
		Uint    uint8             `json:"uint"`
		Bytes   []byte            `json:"bytes"`
		Strings map[string]string `json:"strings"`
		When    time.Time         `json:"when"`
		Tree    *tree             `json:"tree"`
		Plain   int
	}
	tests := []struct {
		name, body string
		want       Error // zero value = accepted
	}{
		{"null for any", `{"any":null}`, Error{}},
		{"null deep inside any", `{"any":{"a":[null]}}`, Error{}},
		{"recursive types", `{"tree":{"name":"a","children":[{"name":"b"}],"by_name":{"x":null}}}`, Error{}},
		{"field without a tag", `{"Plain":1}`, Error{}},
		{"null deep in a recursive type", `{"tree":{"children":[{"children":[{"name":null}]}]}}`, Error{
			Pointer: "/tree/children/0/children/0/name", Detail: "must be a string, got null",
		}},
		{"null in a map of strings", `{"strings":{"a":"b","c":null}}`, Error{Pointer: "/strings/c", Detail: "must be a string, got null"}},
		{"float out of range", `{"float":1e400}`, Error{Pointer: "/float", Detail: "is out of range: 1e400"}},
		{"number in any out of range", `{"any":[1e400]}`, Error{Pointer: "/any/0", Detail: "is out of range: 1e400"}},
		{"negative for unsigned", `{"uint":-1}`, Error{Pointer: "/uint", Detail: "must be a whole number from 0 up, got -1"}},
		{"too large for its size", `{"uint":256}`, Error{Pointer: "/uint", Detail: "is out of range: 256"}},
		{"time of another form", `{"when":"tomorrow"}`, Error{Pointer: "/when", Detail: "must be a time such as 2026-01-02T15:04:05Z"}},
		{"null for a time", `{"when":null}`, Error{Pointer: "/when", Detail: "must be a time such as 2026-01-02T15:04:05Z, got null"}},
		{"number for a time", `{"when":1}`, Error{Pointer: "/when", Detail: "must be a time such as 2026-01-02T15:04:05Z, got a number"}},
		{"number for bytes", `{"bytes":1}`, Error{Pointer: "/bytes", Detail: "must be a base64 string, got a number"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v odd
			err := Unmarshal([]byte(tt.body), &v)
			if tt.want == (Error{}) {
				if err != nil {
					t.Errorf("Unmarshal(%s): got error %v, want none", tt.body, err)
				}
				return
			}
			checkError(t, err, tt.want)
		})
	}
}

func TestUnmarshal_RejectsDeepNesting(t *testing.T) {
	nested := func(depth int) []byte {
		return []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	}
	for name, tt := range map[string]struct {
		decode func([]byte, any) error
		limit  int
	}{
		"own": {Unmarshal, 256}, "foreign": {UnmarshalAllowUnknown, 256},
		"own, deep": {UnmarshalDeep, 1024}, "deep, of a newer version": {UnmarshalDeepAllowUnknown, 1024},
	} {
		t.Run(name, func(t *testing.T) {
			decode := tt.decode
			for _, v := range []any{new(any), new(json.RawMessage)} {
				if err := decode(nested(tt.limit), v); err != nil {
					t.Errorf("%d levels into %T: got error %v, want none", tt.limit, v, err)
				}
				want := Error{Detail: fmt.Sprintf("nests deeper than %d levels", tt.limit)}
				checkError(t, decode(nested(tt.limit+1), v), want)
				checkError(t, decode(nested(1<<20), v), want)
				checkError(t, decode([]byte(strings.Repeat(`{"a":`, 1<<18)), v), want)
			}
			// Many sibling brackets, and brackets inside strings, do not count for the depth.
			wide := []byte(`[` + strings.Repeat(`[],`, 1000) + `{"a\"[":"` + strings.Repeat("[{", 1000) + `\\"}]`)
			if err := decode(wide, new(any)); err != nil {
				t.Errorf("wide but shallow: got error %v, want none", err)
			}
		})
	}
}

func TestError_TextIsBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<16)
	for _, body := range []string{
		`{"` + long + `":1}`,
		`{"content":{"prompt":"x","inputs":{"` + long + `":{"a":1,"a":2}}}}`,
		`{"content":{"prompt":"x","inputs":{"` + long + `":1,"` + long + `":1}}}`,
		`{"options":{"timeout_ms":` + strings.Repeat("9", 1<<16) + `}}`,
	} {
		var r contract.Request
		err := Unmarshal([]byte(body), &r)
		if err == nil {
			t.Errorf("%.40s…: got no error, want one", body)
			continue
		}
		if n := len(err.Error()); n > 1024 {
			t.Errorf("%.40s…: got an error of %d bytes, want at most 1024", body, n)
		}
	}
}

func TestError_ContainsPointer(t *testing.T) {
	if got, want := (&Error{Pointer: "/a/0", Detail: "is required"}).Error(), "/a/0: is required"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got, want := (&Error{Detail: "is not JSON"}).Error(), "is not JSON"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}
