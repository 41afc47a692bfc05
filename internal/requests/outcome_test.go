package requests

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// endRequest ends the request with its tasks as they are.
func endRequest(t *testing.T, r *Record) {
	must(t, r.End(contract.StatusCancelled, answer(contract.StatusCancelled), now))
}

func TestDeliver_FirstResultStays(t *testing.T) {
	first := func(t *testing.T, r *Record) {
		fresh, err := r.Deliver("t1", "quality", result("first"))
		must(t, err)
		if !fresh {
			t.Fatal("got fresh false for the first result, want true")
		}
	}
	tests := []struct {
		name        string
		did         []func(*testing.T, *Record)
		task, agent string
		result      *contract.Result
		want        error
		fresh       bool
	}{
		{"sent task", nil, "t1", "quality", result("x"), nil, true},
		{"waiting task", steps(func(t *testing.T, r *Record) { must(t, r.Wait("t1")) }), "t1", "quality", result("x"), nil, true},
		{"same result again", steps(first), "t1", "quality", result("first"), nil, false},
		{"another", steps(first), "t1", "quality", result("second"), ErrDifferentResult, false},
		{"same as the direct response", steps(did(Outcome{Result: result("x")})), "t1", "quality", result("x"), nil, false},
		{"other than the direct response", steps(did(Outcome{Result: result("x")})), "t1", "quality", result("y"), ErrDifferentResult, false},
		{"after an error", steps(did(failed(contract.TaskDeadlineExceeded))), "t1", "quality", result("x"), ErrDifferentResult, false},
		{"same result after the end", steps(first, endRequest), "t1", "quality", result("first"), nil, false},
		{"other result after the end", steps(first, endRequest), "t1", "quality", result("second"), ErrEnded, false},
		{"first result after the end", steps(endRequest), "t1", "quality", result("x"), ErrEnded, false},
		{"unknown task", nil, "t9", "quality", result("x"), ErrUnknownTask, false},
		{"unknown task after the end", steps(endRequest), "t9", "quality", result("x"), ErrUnknownTask, false},
		{"task of another agent", nil, "t1", "second", result("x"), ErrUnknownTask, false},
		{"task of another agent, same result", steps(first), "t1", "second", result("first"), ErrUnknownTask, false},
		{"nothing", nil, "t1", "quality", nil, ErrUnknownTask, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, StateRunning)
			for _, step := range tt.did {
				step(t, r)
			}
			before := encodedText(t, r)
			fresh, err := r.Deliver(tt.task, tt.agent, tt.result)
			if !errors.Is(err, tt.want) || fresh != tt.fresh {
				t.Fatalf("got fresh %t and error %v, want %t and %v", fresh, err, tt.fresh, tt.want)
			}
			if !tt.fresh {
				checkUnchanged(t, r, before)
				return
			}
			if got := r.FindTask("t1"); got.State != TaskDone || got.Result != tt.result || got.ResultHash == "" {
				t.Errorf("got task %+v, want it done with the result", got)
			}
		})
	}
}

func steps(s ...func(*testing.T, *Record)) []func(*testing.T, *Record) { return s }

func TestFinish_FirstOutcomeStays(t *testing.T) {
	tests := []struct {
		name string
		did  func(*testing.T, *Record)
		task string
		out  Outcome
		want error
	}{
		{"a result", nothing, "t1", Outcome{Result: result("x"), Attempts: 2, LatencyMS: 1.5}, nil},
		{"error", nothing, "t1", failed(contract.TaskAgentUnavailable), nil},
		{"neither", nothing, "t1", Outcome{}, ErrTransition},
		{"both", nothing, "t1", Outcome{Result: result("x"), Err: &contract.TaskError{}}, ErrTransition},
		{"unknown task", nothing, "t9", Outcome{Result: result("x")}, ErrUnknownTask},
		{"other result after a result", did(Outcome{Result: result("x")}), "t1", Outcome{Result: result("y")}, ErrDifferentResult},
		{"error after a result", did(Outcome{Result: result("x")}), "t1", failed(contract.TaskDeadlineExceeded), ErrDifferentResult},
		{"error after an error", did(failed(contract.TaskBadResult)), "t1", failed(contract.TaskBadResult), ErrDifferentResult},
		{"result after an error", did(failed(contract.TaskBadResult)), "t1", Outcome{Result: result("x")}, ErrDifferentResult},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, StateRunning)
			tt.did(t, r)
			before := encodedText(t, r)
			err := r.Finish(tt.task, tt.out)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got error %v, want %v", err, tt.want)
			}
			if tt.want != nil {
				checkUnchanged(t, r, before)
				return
			}
			got := *r.FindTask("t1")
			got.ResultHash = ""
			want := Task{
				ID: "t1", AgentID: "quality", State: TaskDone, SentAt: now, Attempts: max(1, tt.out.Attempts), LatencyMS: tt.out.LatencyMS,
				Result: tt.out.Result, Err: tt.out.Err, Uncertain: tt.out.Uncertain,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("task (-want +got):\n%s", diff)
			}
		})
	}
}

// A callback carries no latency; the execution that waited for it adds it.
func TestFinish_AddsLatencyAfterDeliver(t *testing.T) {
	r := inState(t, StateRunning)
	res := result("x")
	if _, err := r.Deliver("t1", "quality", res); err != nil {
		t.Fatal(err)
	}
	must(t, r.Finish("t1", Outcome{Result: result("x"), Attempts: 3, LatencyMS: 12}))
	if got := r.FindTask("t1"); got.Result != res || got.Attempts != 3 || got.LatencyMS != 12 {
		t.Errorf("got %d attempts and %g ms, want 3 and 12 with the first result", got.Attempts, got.LatencyMS)
	}
}

func TestFinish_RejectsUnencodableResult(t *testing.T) {
	r := inState(t, StateRunning)
	before := encodedText(t, r)
	bad := &contract.Result{Status: contract.ResultSuccess, Metrics: map[string]float64{"tokens": math.NaN()}}
	if err := r.Finish("t1", Outcome{Result: bad}); err == nil {
		t.Error("Finish: got no error, want one")
	}
	if _, err := r.Deliver("t1", "quality", bad); err == nil {
		t.Error("Deliver: got no error, want one")
	}
	checkUnchanged(t, r, before)
}

func TestHashResult_CoversResult(t *testing.T) {
	with := func(data string) *contract.Result {
		return &contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"rows": json.RawMessage(data)}}
	}
	named := with(`1`)
	named.TaskID = "t1"
	logged := with(`1`)
	logged.Logs = []string{"l"}
	tests := []struct {
		name string
		a, b *contract.Result
		same bool
	}{
		{"equal", with(`[1,{"a":null}]`), with(`[1,{"a":null}]`), true},
		{"white space", with(`[1,{"a":null}]`), with("[ 1,\n{\"a\" : null}]"), true},
		{"other order of members", with(`{"a":1,"b":{"c":2,"d":3}}`), with(`{"b":{"d":3,"c":2},"a":1}`), true},
		{"other spelling of a number", with(`1`), with(`1.0`), true},
		{"other spelling of a string", with(`"é"`), with(`"\u00e9"`), true},
		{"with the task id", with(`1`), named, true},
		{"other value", with(`1`), with(`2`), false},
		{"other order of a list", with(`[1,2]`), with(`[2,1]`), false},
		{"number as text", with(`1`), with(`"1"`), false},
		{"other log", with(`1`), logged, false},
		{"other status", with(`1`), &contract.Result{Status: contract.ResultPartial, Data: with(`1`).Data}, false},
		{"number above the range of a double", with(`1e999`), with(`1e999`), true},
		{"two numbers above the range of a double", with(`1e999`), with(`2e999`), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := hashResult(tt.a)
			must(t, err)
			b, err := hashResult(tt.b)
			must(t, err)
			if (a == b) != tt.same {
				t.Errorf("got %s and %s, want equal %t", a, b, tt.same)
			}
		})
	}
}

func TestHashResult_EncodesSortedAsCanonical(t *testing.T) {
	text := rapid.String()
	value := rapid.Custom(func(t *rapid.T) json.RawMessage {
		raw, err := strictjson.Marshal(text.Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		return rapid.SampledFrom([]json.RawMessage{
			raw, raw, raw, []byte("true"), []byte("null"), []byte(" \"a\" "), []byte("1e2"), []byte(`{"b":1,"a":[]}`), nil, []byte("\"\xff\""),
		}).Draw(t, "raw")
	})
	rapid.Check(t, func(t *rapid.T) {
		res := &contract.Result{
			TaskID: text.Draw(t, "task_id"), Status: contract.ResultSuccess,
			Data: rapid.MapOfN(text, value, 0, 4).Draw(t, "data"), Metrics: rapid.MapOfN(text, rapid.Float64Range(-1e9, 1e9), 0, 3).Draw(t, "metrics"),
			Logs: rapid.SliceOfN(text, 0, 3).Draw(t, "logs"), Explanations: rapid.SliceOfN(text, 0, 3).Draw(t, "explanations"),
		}
		if !hasOneSpelling(res.Data) {
			return
		}
		want, wantErr := encodeCanonical(res)
		got, err := encodeSorted(res)
		if string(got) != string(want) || (err == nil) != (wantErr == nil) {
			t.Fatalf("encodeSorted = %s, %v, want %s, %v", got, err, want, wantErr)
		}
	})
}
