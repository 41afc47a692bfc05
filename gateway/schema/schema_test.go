package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/schema"
)

func TestValidate_ReportsLeafPointers(t *testing.T) {
	s := mustCompile(t, `{"type":"object","required":["city"],"additionalProperties":false,
		"properties":{"city":{"type":"string"},"days":{"type":"array","items":{"type":"integer"}},"a/b":{"type":"null"}}}`)
	tests := []struct {
		value string
		want  []contract.ErrorDetail
	}{
		{`{"city":"Madrid","days":[1,2]}`, nil},
		{`{"days":[1,"two"]}`, []contract.ErrorDetail{
			{Detail: "missing property 'city'"},
			{Pointer: "/days/1", Detail: "got string, want integer"},
		}},
		{`{"city":"x","town":"y"}`, []contract.ErrorDetail{{Detail: "additional properties 'town' not allowed"}}},
		{`{"city":"x","a/b":1}`, []contract.ErrorDetail{{Pointer: "/a~1b", Detail: "got number, want null"}}},
		{`{"city":"x"`, []contract.ErrorDetail{{Detail: "is not JSON: the text ends too early at line 1, column 12"}}},
		{`{"city":"x","city":"y"}`, []contract.ErrorDetail{{Detail: `/city: name "city" appears more than once`}}},
	}
	for _, tt := range tests {
		var got []contract.ErrorDetail
		err := s.Validate(json.RawMessage(tt.value))
		if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
			got = invalid.Details
		} else if err != nil {
			t.Errorf("%s: got %T, want *schema.InvalidError", tt.value, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: details (-want +got):\n%s", tt.value, diff)
		}
	}
}

func TestCompile_RejectsSchemaBeyondLimits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, schema, want string
	}{
		{"size", `{"description":"` + strings.Repeat("x", schema.MaxBytes) + `"}`, "is larger than 262144 bytes"},
		{"depth", strings.Repeat(`{"not":`, schema.MaxDepth) + `{}` + strings.Repeat(`}`, schema.MaxDepth), "nests deeper than 64 levels"},
		{"values", `{"enum":[` + strings.Repeat("1,", schema.MaxValues) + `1]}`, "contains more than 20000 values"},
		{"references", `{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/a"},`, schema.MaxReferences) + `{"$ref":"#/$defs/a"}],"$defs":{"a":{}}}`, "contains more than 2000 references"},
		{"exponent", `{"multipleOf":1e-999999999}`, "contains a number with an exponent beyond 1000"},
		{"huge exponent", `{"maximum":1e99999999999999999999}`, "contains a number with an exponent beyond 1000"},
		{"digits", `{"maximum":` + strings.Repeat("9", 401) + `}`, "contains a number with more than 400 digits"},
		{"a file", `{"$ref":"file://` + file + `"}`, "references to other documents are not resolved"},
		{"a host", `{"$ref":"http://127.0.0.1:1/schema.json"}`, "references to other documents are not resolved"},
		{"other dialect in a remote document", `{"$schema":"http://127.0.0.1:1/meta.json"}`, "references to other documents are not resolved"},
		{"unresolved reference", `{"$ref":"#/$defs/none"}`, "is not a valid JSON Schema: "},
		{"invalid expression", `{"pattern":"("}`, "is not a valid JSON Schema: /pattern "},
		{"expression of exponential size", `{"pattern":"((a{100}){100}){100}"}`, "is not a valid JSON Schema: "},
		{"a type", `{"type":"text"}`, "is not a valid JSON Schema: /type "},
		{"a list", `[]`, "is not a valid JSON Schema: "},
		{"not JSON", `{`, "is not JSON: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := schema.Compile(json.RawMessage(tt.schema))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want an error that begins with %q", err, tt.want)
			}
		})
	}
}

// Without limits, each of these schemas would exhaust the memory or take years.
func TestValidate_RejectsExpensiveValidation(t *testing.T) {
	chain := func(keyword string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range 60 {
			fmt.Fprintf(&b, `"d%d":{%s},`, i, fmt.Sprintf(keyword, i+1))
		}
		b.WriteString(`"d60":{}}}`)
		return b.String()
	}
	nested := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	objects := strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60)
	tests := []struct {
		name, schema, value, want string
	}{
		{"itself", `{"$ref":"#"}`, `1`, "without end"},
		{"recursion through others", `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}}`, `1`, "without end"},
		{"dynamic recursion", `{"$dynamicAnchor":"n","$dynamicRef":"#n"}`, `1`, "without end"},
		{"recursion by $recursiveRef", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"$recursiveRef":"#"}`, `1`, "without end"},
		{"exponential in place", chain(`"allOf":[{"$ref":"#/$defs/d%[1]d"},{"$ref":"#/$defs/d%[1]d"}]`), `1`, "steps"},
		{"exponential through conditions", chain(`"if":{"$ref":"#/$defs/d%[1]d"},"then":{"$ref":"#/$defs/d%[1]d"}`), `1`, "steps"},
		{"exponential in the value", `{"items":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, nested, "steps"},
		{"exponential in properties", `{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`, objects, "steps"},
		{"unevaluated", `{"additionalProperties":{"$ref":"#"},"unevaluatedProperties":{"$ref":"#"}}`, objects, "steps"},
		{"names", `{"propertyNames":{"enum":[` + strings.Repeat(`"x",`, 5000) + `"y"]}}`, `{` + manyProperties(200) + `}`, "steps"},
		{"exponent", `{"type":"number"}`, `1e999999999`, "exponent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, tt.schema)
			err := s.Validate(json.RawMessage(tt.value))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error that contains %q", err, tt.want)
			}
		})
	}
}

func TestValidate_AcceptsRecursiveSchema(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}}}`)
	var tree func(depth int) string
	tree = func(depth int) string {
		if depth == 0 {
			return `{"name":"leaf"}`
		}
		child := tree(depth - 1)
		return `{"name":"node","children":[` + child + `,` + child + `]}`
	}
	if err := s.Validate(json.RawMessage(tree(10))); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

func manyProperties(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`"p%d":1`, i)
	}
	return strings.Join(parts, ",")
}

func mustCompile(t *testing.T, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func FuzzCompile(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"items":{"$ref":"#"}}}}`, `{"a":[{"a":[]}]}`)
	f.Add(`{"$dynamicAnchor":"n","anyOf":[{"$dynamicRef":"#n"}]}`, `1`)
	f.Add(`{"$ref":"#","unevaluatedItems":{"$ref":"#"}}`, `[[1]]`)
	f.Fuzz(func(t *testing.T, raw, value string) {
		s, err := schema.Compile(json.RawMessage(raw))
		if err != nil {
			return
		}
		if err := s.Validate(json.RawMessage(value)); err != nil {
			if _, ok := errors.AsType[*schema.InvalidError](err); !ok {
				t.Errorf("got %T, want *schema.InvalidError", err)
			}
		}
	})
}
