package history

import (
	"context"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/redact"
)

// RunEvent is an event of an orchestration that leads to a call, prevents it, or ends the
// orchestration.
type RunEvent struct {
	RunID string
	// RequestID is the id of the request whose task the run is, so that the erasure of the
	// request reaches the record; "" if the run is the caller's own.
	RequestID string
	TraceID   string
	Caller    *contract.Caller
	Agent     string // whose task it is; "" if it is the caller's own
	Status    contract.Status
	Event     contract.RunEvent
}

// runContent is the part of the record of a RunEvent that can be erased.
type runContent struct {
	Step   string `json:"step,omitempty"`
	Detail string `json:"detail,omitempty"` // masked
	By     string `json:"by,omitempty"`
}

// RecordRunEvent writes the event. Its texts are masked. An error is for the caller, the
// log has its cause.
func (j *Journal) RecordRunEvent(ctx context.Context, ev *RunEvent, masking *redact.Masking) error {
	rec := newRecord(audit.KindRun, ev.Caller)
	rec.RequestID, rec.TraceID, rec.Action, rec.Status = ev.RunID, ev.TraceID, ev.Event.Action, ev.Status
	rec.Note = strings.TrimSpace(ev.Event.Event + " " + ev.Event.Rule)
	rec.Content = encodeJSON(runContent{Step: ev.Event.StepID, Detail: masking.MaskText(ev.Event.Detail), By: ev.Event.By})
	if ev.RequestID != "" {
		rec.RequestID, rec.OrchestrationID = ev.RequestID, ev.RunID
	}
	if ev.Agent != "" {
		rec.Agents = []string{ev.Agent}
	}
	return j.appendOnce(ctx, rec, "the event of the orchestration cannot be recorded")
}
