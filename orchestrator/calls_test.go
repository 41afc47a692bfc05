package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
)

// An interrupted call is repeated only if the tool is repeatable.
func TestRun_ResumesInterruptedCall(t *testing.T) {
	for plan, want := range map[string]contract.RunReason{oneRead: "", oneWrite: contract.ReasonOutcomeUnknown} {
		calls := 0
		r := newHarness(t, newRecord(plan), nil)
		crashed := fmt.Errorf("the process ends here")
		r.config.Invoker = invokeFunc(func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
			calls++
			if calls == 1 {
				panic(crashed)
			}
			return textResult("hello"), nil
		})
		func() {
			defer func() { _ = recover() }()
			r.run(t)
		}()
		_, err := r.store.Update(t.Context(), "run-1", func(rec *orchestrator.Record) error { return rec.TakeOver(testOwner, rec.CreatedAt) })
		if err != nil {
			t.Fatal(err)
		}
		got := r.run(t)
		if got.Reason != want || !got.State.Terminal() || (calls == 2) != (want == "") {
			t.Errorf("got %s (%s) after %d calls, want reason %q", got.Status(), got.Reason, calls, want)
		}
	}
}

// A call that was certainly not made is repeated by the next process if this one stops before, for
// any tool.
func TestRun_ResumesRetry(t *testing.T) {
	calls := 0
	var o *orchestrator.Orchestrator
	r := newHarness(t, newRecord(oneWrite), func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
		if calls++; calls == 1 {
			o.Drain()
			return nil, &contract.ActionError{Code: contract.ActionUnavailable, Severity: contract.SeveritySevere, Message: "the server is not connected"}
		}
		return textResult("hello"), nil
	})
	var err error
	if o, err = orchestrator.New(r.config); err != nil {
		t.Fatal(err)
	}
	if rec, err := o.Run(t.Context(), r.store.Get()); err == nil {
		t.Fatalf("got status %s of a run whose process stops, want an error", rec.Status())
	}
	_, err = r.store.Update(t.Context(), "run-1", func(rec *orchestrator.Record) error { return rec.TakeOver(testOwner, rec.CreatedAt) })
	if err != nil {
		t.Fatal(err)
	}
	if got := r.run(t); got.Status() != contract.OrchestrationDone || calls != 2 {
		t.Errorf("got %s (%s) after %d calls, want DONE after 2", got.Status(), got.Reason, calls)
	}
}

// A call is not made if a reference in its arguments has no value, or if a short plan refers to a
// large output so often that the arguments would exceed the limits of memory or time.
func TestRun_ChecksReferences(t *testing.T) {
	text := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, output, reference string
		count                   int
		want                    string
	}{
		{"values too large", text, "${steps.a.output}", 20, "the values of the references are larger than 1048576 bytes"},
		{"search too long", `{"x":"` + text + `","y":1}`, "${steps.a.output.y}", 1000, "more than 67108864 bytes of outputs would be searched for the values of the references"},
		{"many small references", `{"y":1}`, "${steps.a.output.y}", 1000, ""},
		{"negative index", `[1]`, "${steps.a.output.-1}", 1, "the output has no value at ${steps.a.output.-1}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := fmt.Sprintf(`{"steps":[
				{"id":"a","action":"files.read","arguments":{"path":"x"},"success_criteria":[{"schema":{}}]},
				{"id":"b","action":"files.write","arguments":{"list":[%q]}}]}`, strings.Repeat(tt.reference, tt.count))
			called := false
			r := newHarness(t, newRecord(plan), func(_ context.Context, call *orchestrator.Call) (*contract.ActionResult, error) {
				called = called || call.StepID == "b"
				return textResult(tt.output), nil
			})
			rec := r.run(t)
			var details []string
			for _, e := range rec.Errors {
				for _, d := range e.Details {
					details = append(details, d.Pointer+" "+d.Detail)
				}
			}
			if tt.want == "" {
				if !called || rec.Status() != contract.OrchestrationDone {
					t.Errorf("got status %s, call %t, want DONE after a call: %+v", rec.Status(), called, rec.Errors)
				}
				return
			}
			if called || rec.Reason != contract.ReasonSchemaInvalid {
				t.Errorf("got reason %q, call %t, want %q without a call", rec.Reason, called, contract.ReasonSchemaInvalid)
			}
			if diff := cmp.Diff([]string{"/steps/1/arguments/list/0 " + tt.want}, details); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
		})
	}
}
