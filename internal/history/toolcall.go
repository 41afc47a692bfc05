package history

import (
	"context"
	"encoding/json"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/redact"
)

// ToolCall is a call of a tool. If Status is running, it has not ended.
type ToolCall struct {
	RequestID       string // of the request that it is a part of, or of its own
	OrchestrationID string // of the orchestration that it is a step of; "" = that is RequestID, or there is none
	TraceID         string
	Caller          *contract.Caller
	Agent           string // whose task it was; "" if the caller called the tool
	Action          string
	Status          contract.Status
	Input           json.RawMessage
	Result          *contract.ActionResult
	Err             *contract.ActionError
}

// toolCallContent is the part of the record of a ToolCall that can be erased.
type toolCallContent struct {
	Input  json.RawMessage        `json:"input,omitempty"`
	Result *contract.ActionResult `json:"result,omitempty"`
	Error  *contract.ActionError  `json:"error,omitempty"`
}

// RecordToolCall writes the call. Its contents are masked. An error is for the caller, the
// log has its cause.
func (j *Journal) RecordToolCall(ctx context.Context, call *ToolCall, masking *redact.Masking) error {
	rec := newRecord(audit.KindToolCall, call.Caller)
	rec.RequestID, rec.OrchestrationID, rec.TraceID = call.RequestID, call.OrchestrationID, call.TraceID
	rec.Action, rec.Status = call.Action, call.Status
	if call.Agent != "" {
		rec.Agents = []string{call.Agent}
	}
	rec.Content = encodeJSON(maskToolCall(call, masking))
	if len(rec.Content) > audit.MaxContentSize {
		rec.Content, rec.Note = nil, "the input and the result were too long to be kept"
	}
	return j.appendOnce(ctx, rec, "the call of the tool cannot be recorded")
}

// maskToolCall returns the contents of the call with personal data and secrets masked.
func maskToolCall(call *ToolCall, m *redact.Masking) toolCallContent {
	none := contract.DataClasses{contract.NoClasses}
	masked := toolCallContent{Input: m.MaskJSON(call.Input, none)}
	if call.Result != nil {
		result := *call.Result
		result.Content, result.Structured = m.MaskJSON(result.Content, none), m.MaskJSON(result.Structured, none)
		masked.Result = &result
	}
	if call.Err != nil {
		failed := *call.Err
		failed.Message, failed.Suggestion, failed.Details = m.MaskText(failed.Message), m.MaskText(failed.Suggestion), nil
		masked.Error = &failed
	}
	return masked
}
