package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Recorder records calls, for an audit log and for metrics.
type Recorder interface {
	// BeginCall is called before a tool is called, after all checks have passed. If it
	// returns an error, the tool is not called.
	BeginCall(ctx context.Context, c *CallRecord) error
	// EndCall is called once for each call of Invoke, also if it was rejected before
	// BeginCall, with the record that BeginCall got. The context is not cancelled.
	EndCall(ctx context.Context, c *CallRecord)
}

// Outcomes of a CallRecord besides the error codes.
const (
	OutcomeOK        = "OK"
	OutcomeCancelled = "CANCELLED" // by the caller
)

// CallRecord describes a call. Inputs, results and errors are redacted by the server's rules
// for logs. The recorder must not keep it after EndCall.
type CallRecord struct {
	ID      string           // set by the recorder, if it needs one
	Caller  *contract.Caller // nil if the call was rejected for that
	AgentID string           // "" = not on behalf of an agent
	Context contract.ActionContext
	Action  string // as requested
	Server  string // "" if there is no such action
	Tool    string // name for the server; "" if there is no such action
	Start   time.Time
	Input   json.RawMessage // nil if it was rejected

	// The following are set for EndCall.
	Outcome  string // OutcomeOK, OutcomeCancelled or the code of the error
	Attempts int    // how often the call was sent to the server
	Latency  time.Duration
	Result   *contract.ActionResult // nil if there is none
	Err      *contract.ActionError  // nil if there is none
}

// noRecorder records nothing.
type noRecorder struct{}

// BeginCall implements Recorder.
func (noRecorder) BeginCall(context.Context, *CallRecord) error { return nil }

// EndCall implements Recorder.
func (noRecorder) EndCall(context.Context, *CallRecord) {}
