package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
)

// Empty values of criteria and results are kept in the record.
func TestRun_ComparesEmptyValues(t *testing.T) {
	for _, tt := range []struct{ criterion, structured string }{
		{`{"equals":[]}`, `[]`},
		{`{"equals":{}}`, `{}`},
		{`{"jsonpath":"$.a","equals":""}`, `{"a":""}`},
		{`{"jsonpath":"$.a","equals":null}`, `{"a":null}`},
		{`{"schema":{}}`, `{"a":1}`},
	} {
		plan := fmt.Sprintf(`{"steps":[{"id":"a","action":"files.write","arguments":{},"success_criteria":[%s]}]}`, tt.criterion)
		r := newHarness(t, newRecord(plan), func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
			return &contract.ActionResult{Type: contract.ActionToolResult, Content: json.RawMessage(`[]`), Structured: json.RawMessage(tt.structured)}, nil
		})
		rec := r.run(t)
		if rec.Status() != contract.OrchestrationDone {
			t.Errorf("%s: got status %s, want DONE: %+v", tt.criterion, rec.Status(), rec.Errors)
			continue
		}
		if got := string(rec.Outputs[0].Result.Structured); got != tt.structured {
			t.Errorf("%s: got the structured content %s, want %s", tt.criterion, got, tt.structured)
		}
	}
}
