package strictjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestValidate_ContractTypes(t *testing.T) {
	long := strings.Repeat("é", 200)
	tests := []struct {
		name string
		v    any
		want []contract.ErrorDetail
	}{
		{"fine", &contract.Request{Content: contract.Content{Prompt: "x"}}, nil},
		{"fine as a value", contract.Result{Status: contract.ResultPartial}, nil},
		{"required", &contract.Request{}, []contract.ErrorDetail{{Pointer: "/content/prompt", Detail: "is required"}}},
		{
			"everything wrong, in the order of the fields",
			&contract.Request{
				History:       []contract.Turn{{Role: "user"}, {Role: "system"}},
				Metadata:      contract.Metadata{Locale: long},
				SessionID:     long,
				Clarification: &contract.ClarificationChoice{RequestID: long},
				Options:       contract.Options{Mode: "later", TimeoutMS: 86_400_001, Fallback: new("D")},
			},
			[]contract.ErrorDetail{
				{Pointer: "/content/prompt", Detail: "is required"},
				{Pointer: "/history/1/role", Detail: "must be one of user, assistant"},
				{Pointer: "/metadata/locale", Detail: "must be at most 35 characters long"},
				{Pointer: "/session_id", Detail: "must be at most 128 characters long"},
				{Pointer: "/clarification/request_id", Detail: "must be at most 64 characters long"},
				{Pointer: "/clarification/option_id", Detail: "is required"},
				{Pointer: "/options/mode", Detail: "must be one of sync, async"},
				{Pointer: "/options/timeout_ms", Detail: "must be at most 86400000, got 86400001"},
				{Pointer: "/options/fallback", Detail: "must be one of A, B, C"},
			},
		},
		{
			"too many entries",
			&contract.Request{Content: contract.Content{Prompt: "x"}, History: make([]contract.Turn, 65)},
			[]contract.ErrorDetail{{Pointer: "/history", Detail: "must have at most 64 entries"}},
		},
		{
			"bounds count characters, not bytes",
			&contract.Request{Content: contract.Content{Prompt: "x"}, SessionID: strings.Repeat("é", 128)},
			nil,
		},
		{"unknown status", &contract.Result{Status: "done"}, []contract.ErrorDetail{
			{Pointer: "/status", Detail: "must be one of success, failure, partial"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Validate(tt.v)); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidate_OtherTypes(t *testing.T) {
	type Inner struct {
		Name string `json:"name" validate:"required"`
	}
	type outer struct {
		Inner
		Named   Inner            `json:"named"`
		ByKey   map[string]Inner `json:"by_key" validate:"max=1,dive"`
		Exact   string           `json:"exact" validate:"omitempty,len=3"`
		Few     []int            `json:"few" validate:"omitempty,min=2"`
		Low     int              `json:"low" validate:"gte=1"`
		High    float64          `json:"high" validate:"lte=1"`
		Unique  []int            `json:"unique" validate:"unique"`
		Address string           `json:"address" validate:"omitempty,startswith=http"`
		Untold  string           `validate:"required"`
		Hidden  string           `json:"-" validate:"required"`
	}
	v := outer{
		ByKey: map[string]Inner{"k/1": {}}, Exact: "ab", Few: []int{1}, High: 2,
		Unique: []int{1, 1}, Address: "ftp",
	}
	want := []contract.ErrorDetail{
		{Pointer: "/name", Detail: "is required"},
		{Pointer: "/named/name", Detail: "is required"},
		{Pointer: "/by_key/k~11/name", Detail: "is required"},
		{Pointer: "/exact", Detail: "must be exactly 3 characters long"},
		{Pointer: "/few", Detail: "must have at least 2 entries"},
		{Pointer: "/low", Detail: "must be at least 1, got 0"},
		{Pointer: "/high", Detail: "must be at most 1, got 2"},
		{Pointer: "/unique", Detail: "does not meet the rule unique"},
		{Pointer: "/address", Detail: "does not meet the rule startswith=http"},
		{Pointer: "/Untold", Detail: "is required"},
		{Pointer: "/Hidden", Detail: "is required"},
	}
	if diff := cmp.Diff(want, Validate(&v)); diff != "" {
		t.Errorf("Validate (-want +got):\n%s", diff)
	}
}

// A type that cannot be validated must be rejected.
func TestValidate_RejectsOtherThanStructs(t *testing.T) {
	for name, v := range map[string]any{"nil": nil, "a string": "x", "a nil pointer": (*contract.Request)(nil)} {
		if got := Validate(v); len(got) != 1 || !strings.Contains(got[0].Detail, "cannot be checked") {
			t.Errorf("Validate(%s): got %v, want one detail about the unsupported type", name, got)
		}
	}
}
