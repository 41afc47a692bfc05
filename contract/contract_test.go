package contract_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestValidAgentID(t *testing.T) {
	tests := map[string]bool{
		"a": true, "quality_agent": true, "a-1": true, "a" + strings.Repeat("b", 63): true,
		"": false, "A": false, "1a": false, "_a": false, "-a": false, "a b": false, "a.b": false, "a/b": false,
		"á": false, "a\x00": false, "a\n": false, "a" + strings.Repeat("b", 64): false,
	}
	for id, want := range tests {
		if got := contract.ValidAgentID(id); got != want {
			t.Errorf("ValidAgentID(%q): got %v, want %v", id, got, want)
		}
	}
}

func TestCaller_SameTenant(t *testing.T) {
	of := func(tenant, issuer string) *contract.Caller {
		return &contract.Caller{Tenant: tenant, Issuer: issuer}
	}
	for _, tt := range []struct {
		a, b *contract.Caller
		want bool
	}{
		{of("north", "one"), of("north", "two"), true},
		{of("north", "one"), of("south", "one"), false},
		{of("", "one"), of("", "one"), true},
		{of("", "one"), of("", "two"), false},
		{of("", "one"), of("", ""), false},
		{of("", ""), of("", ""), true},
		{of("", "north"), of("north", "north"), false},
	} {
		if a, b := tt.a.SameTenant(tt.b), tt.b.SameTenant(tt.a); a != tt.want || b != tt.want {
			t.Errorf("%+v and %+v: got %t and %t, want %t", tt.a, tt.b, a, b, tt.want)
		}
	}
}

func TestRequest_Validate(t *testing.T) {
	bad := "Not An Id"
	tests := []struct {
		name string
		req  contract.Request
		want []string // pointers
	}{
		{"least", contract.Request{Content: contract.Content{Prompt: "x"}}, nil},
		{"longest", contract.Request{Content: contract.Content{Prompt: strings.Repeat("x", contract.MaxPromptBytes)}}, nil},
		{"no prompt", contract.Request{}, []string{"/content/prompt"}},
		{"blank prompt", contract.Request{Content: contract.Content{Prompt: " \n\u00a0"}}, []string{"/content/prompt"}},
		{"prompt too long", contract.Request{Content: contract.Content{Prompt: strings.Repeat("x", contract.MaxPromptBytes+1)}}, []string{"/content/prompt"}},
		{"limit in bytes", contract.Request{Content: contract.Content{Prompt: strings.Repeat("é", contract.MaxPromptBytes/2+1)}}, []string{"/content/prompt"}},
		{"input with a name like prompt", contract.Request{
			Content: contract.Content{Prompt: "x", Inputs: map[string]json.RawMessage{"PROMPT": []byte(`"y"`), "prompts": []byte(`"y"`)}},
		}, []string{"/content/inputs/PROMPT"}},
		{"several errors", contract.Request{
			Content: contract.Content{Inputs: map[string]json.RawMessage{"prompt": []byte(`"y"`)}}, AgentID: &bad,
		}, []string{"/content/prompt", "/content/inputs/prompt", "/agent_id"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			if e := tt.req.Validate(); e != nil {
				if e.Code != contract.CodeInvalidRequest {
					t.Errorf("got code %s, want %s", e.Code, contract.CodeInvalidRequest)
				}
				for _, d := range e.Details {
					got = append(got, d.Pointer)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pointers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCaller(t *testing.T) {
	named := contract.Caller{Scopes: []string{"route:submit", "agent:a", "agent:"}}
	anyAgent := contract.Caller{AllAgents: true}
	local := contract.Caller{AllScopes: true}
	tests := []struct {
		name string
		got  bool
		want bool
	}{
		{"scope held", named.HasScope("route:submit"), true},
		{"scope not held", named.HasScope("admin"), false},
		{"prefix of a scope", named.HasScope("route"), false},
		{"agent named", named.MayUse("a"), true},
		{"agent not named", named.MayUse("b"), false},
		{"agent name is a prefix", named.MayUse("ab"), false},
		{"any agent", anyAgent.MayUse("b"), true},
		{"any agent, other scope", anyAgent.HasScope("admin"), false},
		{"every scope", local.HasScope("admin"), true},
		{"every scope, any agent", local.MayUse("b"), true},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestResult_Text(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"answer first", `{"summary":"s","text":"t","answer":"a"}`, "a"},
		{"then text", `{"summary":"s","text":"t"}`, "t"},
		{"then summary", `{"summary":"s"}`, "s"},
		{"empty answer", `{"answer":"","text":"t"}`, "t"},
		{"answer is not a string", `{"answer":{"a":1},"summary":"s"}`, "s"},
		{"nothing", `{}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r contract.Result
			if err := json.Unmarshal([]byte(tt.data), &r.Data); err != nil {
				t.Fatal(err)
			}
			if got := r.Text(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestError_IsOneLineWithAllDetails(t *testing.T) {
	e := contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
	if got, want := e.Error(), "invalid_request: the request is not valid"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Add("/a", "is required")
	e.Details = append(e.Details, contract.ErrorDetail{Line: 3, Detail: "is odd"})
	if got, want := e.Error(), "invalid_request: the request is not valid: /a is required; is odd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestResponseData_UnsupportedIsInlined checks the wire format of policy B: its members are in data
// itself, not in a nested object.
func TestResponseData_UnsupportedIsInlined(t *testing.T) {
	data, err := json.Marshal(contract.ResponseData{
		Mode: contract.DataUnsupported, Unsupported: &contract.Unsupported{Reason: "no_match"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got["mode"] != "unsupported" || got["reason"] != "no_match" {
		t.Errorf("got %s, want mode and reason next to each other", data)
	}
	plain, err := json.Marshal(contract.ResponseData{Mode: contract.DataDispatch})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plain, []byte(`{"mode":"dispatch"}`)) {
		t.Errorf("got %s, want no member of policy B", plain)
	}
}
