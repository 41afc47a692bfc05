package strictjson

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

type checkedInner struct {
	Name string `json:"name" validate:"required,max=3"`
	Any  any    `json:"any"`
}

type checkedOuter struct {
	checkedInner
	Inner    checkedInner    `json:"inner"`
	Pointer  *checkedInner   `json:"pointer"`
	List     []checkedInner  `json:"list" validate:"max=2,dive"`
	Untold   []checkedInner  `json:"untold"`
	Words    []string        `json:"words" validate:"omitempty,dive,required"`
	Optional *string         `json:"optional" validate:"omitempty,oneof=a b"`
	Needed   *string         `json:"needed" validate:"required"`
	Count    int             `json:"count" validate:"min=1,max=3"`
	Share    float64         `json:"share" validate:"max=1"`
	Exact    string          `json:"exact" validate:"omitempty,len=2"`
	Least    string          `json:"least" validate:"omitempty,min=2"`
	Map      map[string]int  `json:"map" validate:"max=1"`
	Again    *checkedOuter   `json:"again"`
	All      []*checkedOuter `json:"all" validate:"dive"`
}

// TestQuickCheck_AcceptsNothingInvalid checks that the validator accepts everything that the quick
// check accepts.
func TestQuickCheck_AcceptsNothingInvalid(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "b", "é", "éé", "ééé", "abcd", "user", "success", "\xff"})
	optional := rapid.Ptr(text, true)
	inner := rapid.Custom(func(t *rapid.T) checkedInner {
		return checkedInner{Name: text.Draw(t, "name"), Any: rapid.SampledFrom([]any{nil, "x", checkedInner{}, &checkedInner{}}).Draw(t, "any")}
	})
	list := rapid.OneOf(rapid.Just[[]checkedInner](nil), rapid.SliceOfN(inner, 0, 3))
	number := rapid.IntRange(-1, 4)
	var outer func(depth int) *rapid.Generator[*checkedOuter]
	outer = func(depth int) *rapid.Generator[*checkedOuter] {
		return rapid.Custom(func(t *rapid.T) *checkedOuter {
			o := &checkedOuter{
				checkedInner: inner.Draw(t, "embedded"), Inner: inner.Draw(t, "inner"), Pointer: rapid.Ptr(inner, true).Draw(t, "pointer"),
				List: list.Draw(t, "list"), Untold: list.Draw(t, "untold"), Words: rapid.SliceOfN(text, 0, 2).Draw(t, "words"),
				Optional: optional.Draw(t, "optional"), Needed: optional.Draw(t, "needed"), Count: number.Draw(t, "count"),
				Share: rapid.Float64Range(0, 2).Draw(t, "share"), Exact: text.Draw(t, "exact"), Least: text.Draw(t, "least"),
				Map: rapid.MapOfN(text, number, 0, 2).Draw(t, "map"),
			}
			if depth > 0 {
				o.Again, o.All = outer(depth-1).Draw(t, "again"), rapid.SliceOfN(outer(depth-1), 0, 1).Draw(t, "all")
			}
			return o
		})
	}
	request := rapid.Custom(func(t *rapid.T) *contract.Request {
		r := &contract.Request{
			Content: contract.Content{Prompt: text.Draw(t, "prompt")}, SessionID: text.Draw(t, "session"), AgentID: optional.Draw(t, "agent"),
			Metadata: contract.Metadata{Locale: text.Draw(t, "locale")},
			Options:  contract.Options{Mode: text.Draw(t, "mode"), TimeoutMS: number.Draw(t, "timeout"), Fallback: optional.Draw(t, "fallback")},
		}
		for range number.Draw(t, "turns") {
			r.History = append(r.History, contract.Turn{Role: text.Draw(t, "role"), Content: text.Draw(t, "content")})
		}
		return r
	})
	result := rapid.Custom(func(t *rapid.T) *contract.Result {
		return &contract.Result{Status: contract.ResultStatus(text.Draw(t, "status")), TaskID: text.Draw(t, "task")}
	})
	rapid.Check(t, func(t *rapid.T) {
		for _, v := range []any{outer(1).Draw(t, "outer"), inner.Draw(t, "inner"), request.Draw(t, "request"), result.Draw(t, "result")} {
			if details := validateTags(v); len(details) > 0 && isQuicklyValid(v) {
				t.Fatalf("got %+v accepted, want %v", v, details)
			}
		}
	})
}

// TestQuickCheck_DecidesOrdinaryValues checks that ordinary values do not need the validator.
func TestQuickCheck_DecidesOrdinaryValues(t *testing.T) {
	for name, v := range map[string]any{
		"prompt": &contract.Request{Content: contract.Content{Prompt: "x"}},
		"everything": &contract.Request{
			Content: contract.Content{Prompt: "x"}, History: []contract.Turn{{Role: "user", Content: "y"}}, SessionID: "s", AgentID: new("a"),
			Metadata: contract.Metadata{Locale: "pt-BR"}, Clarification: &contract.ClarificationChoice{RequestID: "r", OptionID: "1"},
			Options: contract.Options{Mode: contract.ModeSync, TimeoutMS: 1, Fallback: new("A")},
		},
		"result": &contract.Result{Status: contract.ResultSuccess},
	} {
		if !isQuicklyValid(v) {
			t.Errorf("%s: got undecided, want valid", name)
		}
	}
}
