package responsejson

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// fillValue sets every member of a value, including unknown ones, to a drawn value.
func fillValue(t *rapid.T, v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes(rapid.SampledFrom([][]byte{nil, []byte(`"x"`), []byte("{ \"a\" : [1.50, null] }"), []byte("-0"), []byte("\"\xff\"")}).Draw(t, "raw"))
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a<b>&\"\\\n\u2028", "\xff"})).Draw(t, "text"))
	case reflect.Float64:
		v.SetFloat(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e21, 1e-7, 1.5e-10, 0.1, 100})).Draw(t, "number"))
	case reflect.Int:
		v.SetInt(rapid.Int64().Draw(t, "integer"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Pointer:
		if depth > 0 && rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fillValue(t, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth <= 0 {
			return
		}
		n := rapid.IntRange(0, 2).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fillValue(t, v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 3).Draw(t, "size") {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(rapid.StringMatching(`[a-zé"]{0,3}`).Draw(t, "key"))
			fillValue(t, value, depth-1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fillValue(t, field, depth)
		}
	default:
		t.Fatalf("no value for the kind %s", v.Kind())
	}
}

const maxDepth = 8

func TestAppend_EncodesLikeReflection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r contract.Response
		fillValue(t, reflect.ValueOf(&r).Elem(), maxDepth)
		requireSameEncoding(t, &r, Append)
	})
}

func TestAppendDecision_EncodesLikeReflection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d contract.Decision
		fillValue(t, reflect.ValueOf(&d).Elem(), maxDepth)
		requireSameEncoding(t, &d, AppendDecision)
	})
}

func requireSameEncoding[T any](t *rapid.T, v *T, appendTo func([]byte, *T) ([]byte, error)) {
	want, wantErr := strictjson.Marshal(v)
	got, err := appendTo(nil, v)
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("got error %v, want %v", err, wantErr)
	}
	if err == nil && string(got) != string(want) {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func BenchmarkAppend(b *testing.B) {
	r := typicalResponse()
	b.Run("without reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Append(make([]byte, 0, 2048), r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := strictjson.Marshal(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func typicalResponse() *contract.Response {
	const id = "01980c1a-7c00-7a3e-9d41-000000000001"
	return &contract.Response{
		RequestID: id, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Status: contract.StatusCompleted,
		Decision: &contract.Decision{
			DecisionID: id,
			Classification: contract.Classification{
				Intent: "code_review", Domains: []string{"python"}, DomainOrigins: []contract.DomainOrigin{{Domain: "python", Origin: contract.DomainNamed}},
				Subtasks:   []contract.Subtask{{Title: "Please do a code review of this python module"}},
				Confidence: 0.9974, Source: contract.SourceLexical, LatencyMS: 0.021,
				Alternatives: []contract.IntentScore{{Intent: "databricks_review", Confidence: 0.001}, {Intent: "cost_analysis", Confidence: 0.0005}},
			},
			Candidates: []contract.Candidate{{
				AgentID: "quality_agent", Score: 1, Parts: contract.ScoreParts{Intent: 0.6, Domains: 0.4}, MatchedDomains: []string{"python"},
				Eligible: true, Role: contract.RoleChosen, Gates: []contract.Gate{},
			}},
			CandidatesTotal: 1, Chosen: []string{"quality_agent"}, Standby: []string{},
			RegistryVersion: "sha256:b09e6b18757b69c5bb92977bc1baa808c7ec1640392a3bedd7bd2969d143ea6c",
			TimingsMS:       map[string]float64{"mask": 0.01, "classify": 0.02, "match": 0.005, "record": 0.3, "dispatch": 0.9, "total": 1.3},
		},
		Tasks: []contract.TaskReport{{TaskID: id, AgentID: "quality_agent", SubtaskTitle: "Please do a code review", Status: contract.TaskSuccess, Attempts: 1, LatencyMS: 0.8}},
		Data: contract.ResponseData{Mode: contract.DataDispatch, Answer: "done", Results: []contract.AgentResult{{
			AgentID: "quality_agent", SubtaskTitle: "Please do a code review", Status: contract.TaskSuccess,
			Data: map[string]json.RawMessage{"answer": json.RawMessage(`"done"`)},
		}}},
	}
}
