package orchestratortarget

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/attempt"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// newNotApproved returns the failure of a task whose run waited for an approval when its
// deadline passed. The calls that waited were not made; those before them were.
func newNotApproved(c *dispatch.Call, run *contract.Orchestration, cause error) *attempt.Error {
	gates := run.UndecidedGates()
	steps := make([]string, len(gates))
	for i := range gates {
		steps[i] = describeGate(&gates[i])
	}
	noun, verb := "step ", "it was"
	if len(gates) > 1 {
		noun, verb = "steps ", "they were"
	}
	made := ""
	switch n := run.Provenance.Calls; {
	case n == 1:
		made = "made 1 call and "
	case n > 1:
		made = fmt.Sprintf("made %d calls and ", n)
	}
	return &attempt.Error{
		Code: contract.TaskDeadlineExceeded, Cause: cause,
		Detail: fmt.Sprintf("%s %swaited until the deadline for an approval of %s%s, so %s not called: "+
			"send the request with mode async and a longer timeout_ms, or the goal to POST /api/v1/orchestrations",
			c.Agent.ID, made, noun, strings.Join(steps, ", "), verb),
		MayHaveExecuted: made != "" && !c.Agent.Endpoint.Idempotent,
	}
}

func describeGate(gate *contract.ApprovalGate) string {
	return fmt.Sprintf("%q (%s, rule %s)", gate.StepID, gate.Action, gate.Rule)
}

// NewGateProgress returns the progress of a task whose run waits for an approval.
func NewGateProgress(taskID string, gate *contract.ApprovalGate) *contract.Progress {
	progress := &contract.Progress{
		Message: fmt.Sprintf("waits for an approval of step %s until %s: caprouter orchestrate approve %s %s",
			describeGate(gate), gate.ExpiresAt.UTC().Format(time.RFC3339), taskID, gate.StepID),
		Data: map[string]json.RawMessage{},
	}
	for name, value := range map[string]any{"orchestration_id": taskID, "gate": gate} {
		if raw, err := strictjson.Marshal(value); err == nil {
			progress.Data[name] = raw
		}
	}
	return progress
}
