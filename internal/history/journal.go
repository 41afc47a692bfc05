package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/loglimit"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/responsejson"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Subject is the request that an audit record is about.
type Subject struct {
	Caller     *contract.Caller
	Masking    *redact.Masking // nil = the response contains no text of an agent or a model
	Prompt     string          // masked
	SessionKey string          // "" without a session
	ShowLogs   bool            // the caller gets the logs of the agents
}

// JournalLog is the audit log of a Journal. *audit.Log implements it.
type JournalLog interface {
	Append(ctx context.Context, rec audit.Record) error
	Submit(ctx context.Context, rec audit.Record, done func(error)) error
	Find(ctx context.Context, requestID string) (audit.RequestRecords, error)
}

// Journal writes decisions and responses to the audit log. It is safe for
// concurrent use.
type Journal struct {
	log      JournalLog
	owner    string
	optional bool
	logger   *slog.Logger
	now      func() time.Time

	background *background
	backlog    *backlog
}

// NewJournal returns a Journal. If it is optional, requests are served although
// their records cannot be written: errors are only logged. The owner names this process
// in decisions; it is "" if no other process uses the store.
func NewJournal(log JournalLog, owner string, optional bool, logger *slog.Logger, now func() time.Time) *Journal {
	j := &Journal{log: log, owner: owner, optional: optional, logger: logger, now: now, background: newBackground()}
	j.backlog = newBacklog(j.recordLate)
	return j
}

// DecidedBy returns the owner id of the process that made a decision, "" if the record
// does not contain it.
func DecidedBy(decision *audit.Record) string {
	var c Content
	if decision == nil || decision.Content == nil || strictjson.UnmarshalDeep(decision.Content, &c) != nil {
		return ""
	}
	return c.Owner
}

// RecordDecision writes the decision. It is called before any task is sent, and calls
// meanwhile while the record is being written, unless that fails at once. An error is for the
// caller, the log has its cause.
func (j *Journal) RecordDecision(ctx context.Context, s Subject, req *contract.Request, d *contract.Decision, meanwhile func()) error {
	rec := newRecord(audit.KindDecision, s.Caller)
	addDecision(&rec, d)
	rec.RequestID, rec.TraceID, rec.Status = req.RequestID, req.TraceID, contract.StatusRunning
	rec.Content, _ = encodeContent(Content{Prompt: s.Prompt, Owner: j.owner}, "decision", d, responsejson.AppendDecision)
	rec.At = j.now().UTC()
	written := make(chan error, 1)
	err := j.log.Submit(ctx, rec, func(err error) { written <- err })
	if err == nil {
		meanwhile()
		select {
		case err = <-written:
		case <-ctx.Done():
			err = fmt.Errorf("%w: not known to be written: %w", store.ErrUnavailable, context.Cause(ctx))
		}
	}
	if err != nil {
		return j.reportFailure(ctx, &rec, err)
	}
	return nil
}

// RecordResponse writes the response of a request that has ended. If the log is full,
// it tries again for about two seconds, because the agents have done their work already
// and room is being made. An error is for the caller, the log has its cause.
func (j *Journal) RecordResponse(ctx context.Context, r EncodedResponse) error {
	return j.appendRecord(ctx, r.record, resilience.RetryConfig{
		MaxAttempts: 8, Backoff: 20 * time.Millisecond, MaxBackoff: 500 * time.Millisecond,
		Retryable: func(err error) bool { return errors.Is(err, store.ErrFull) },
	})
}

// RestoreResponse writes the response of a request whose process stopped before it
// could. Errors are those of the audit log, so that the caller can retry.
func (j *Journal) RestoreResponse(ctx context.Context, s Subject, resp *contract.Response) error {
	rec := EncodeResponse(s, resp).record
	rec.At = j.now().UTC()
	return j.log.Append(ctx, rec)
}

// CloseInterrupted writes the response of a synchronous request whose process
// stopped before it was complete.
func (j *Journal) CloseInterrupted(ctx context.Context, decision *audit.Record) error {
	return j.log.Append(ctx, j.interruptedRecord(ctx, decision))
}

// interruptedRecord returns the outcome of an interrupted request.
func (j *Journal) interruptedRecord(ctx context.Context, decision *audit.Record) audit.Record {
	var c Content
	if decision.Content != nil { // nil after it was erased
		if err := strictjson.UnmarshalDeep(decision.Content, &c); err != nil {
			j.logger.ErrorContext(ctx, "cannot read the decision of an interrupted request", "request_id", decision.RequestID, "error", err)
		}
	}
	rec := EncodeResponse(Subject{Caller: recordCaller(decision), Prompt: c.Prompt},
		InterruptedResponse(decision.RequestID, decision.TraceID, c.Decision)).record
	rec.At = j.now().UTC()
	return rec
}

// ChainCloser closes the chain of another replica in the audit log. *audit.Log implements it.
type ChainCloser interface {
	CloseChain(ctx context.Context, writer string, end func(ctx context.Context, decision *audit.Record) (*audit.Record, error)) (int, error)
}

// CloseReplica records an outcome for each synchronous request that a dead replica did not
// complete, and returns their number. isStored reports whether a request has a
// record, which ends it. If the error is store.ErrConflict, another replica is doing the
// same, or the replica has returned.
func (j *Journal) CloseReplica(
	ctx context.Context, log ChainCloser, writer string, isStored func(ctx context.Context, requestID string) (bool, error),
) (int, error) {
	return log.CloseChain(ctx, writer, func(ctx context.Context, decision *audit.Record) (*audit.Record, error) {
		if stored, err := isStored(ctx, decision.RequestID); stored || err != nil {
			return nil, err
		}
		rec := j.interruptedRecord(ctx, decision)
		return &rec, nil
	})
}

// appendRecord writes the record. If the journal is optional, errors are only logged.
func (j *Journal) appendRecord(ctx context.Context, rec audit.Record, retry resilience.RetryConfig) error {
	rec.At = j.now().UTC()
	err := resilience.Retry(ctx, retry, func(ctx context.Context, _ int) error { return j.log.Append(ctx, rec) })
	if err == nil {
		return nil
	}
	return j.reportFailure(ctx, &rec, err)
}

// appendOnce is appendRecord without a retry. Its error for the caller has the message.
func (j *Journal) appendOnce(ctx context.Context, rec audit.Record, message string) error {
	if j.appendRecord(ctx, rec, resilience.RetryConfig{}) != nil {
		return &contract.Error{Code: contract.CodeAuditUnavailable, Message: message}
	}
	return nil
}

// reportFailure logs why a record is not written, and returns the error for the caller, nil
// if the journal is optional.
func (j *Journal) reportFailure(ctx context.Context, rec *audit.Record, err error) error {
	j.logFailure(ctx, rec, err)
	if j.optional {
		return nil
	}
	return &contract.Error{Code: contract.CodeAuditUnavailable, Message: "decisions cannot be recorded now, so nothing is dispatched; try again"}
}

func (j *Journal) logFailure(ctx context.Context, rec *audit.Record, err error) {
	if ctx.Err() != nil {
		j.logger.InfoContext(ctx, "the deadline passed before an audit record was stored", "request_id", rec.RequestID, "record", string(rec.Kind))
		return
	}
	logCtx := ctx
	if store.IsTemporary(err) { // this would be one line for each request
		logCtx = loglimit.With(ctx, "cannot write the audit log")
	}
	j.logger.ErrorContext(logCtx, "cannot write the audit log", "request_id", rec.RequestID, "record", string(rec.Kind), "error", err)
}

// IsTemporary reports whether err is an error of the journal or of the store that
// may be gone at the next attempt.
func IsTemporary(err error) bool {
	e, ok := errors.AsType[*contract.Error](err)
	return ok && (e.Code == contract.CodeAuditUnavailable || e.Code == contract.CodeOverloaded) || store.IsTemporary(err)
}

// addTaskAgents adds the agents that got a task to the chosen ones.
func addTaskAgents(chosen []string, tasks []contract.TaskReport) []string {
	agents := slices.Clip(chosen)
	add := func(id string) {
		if id != "" && !slices.Contains(agents, id) {
			agents = append(agents, id)
		}
	}
	for i := range tasks {
		for k := range tasks[i].FailedOver {
			add(tasks[i].FailedOver[k].AgentID)
		}
		add(tasks[i].AgentID)
	}
	return agents
}

// recordCaller returns the principal that sent the request of a record. Its scopes
// are not recorded.
func recordCaller(rec *audit.Record) *contract.Caller {
	return &contract.Caller{Tenant: rec.Tenant, Subject: rec.Subject, Issuer: rec.Issuer}
}

// InterruptedResponse is the response to a synchronous request whose process
// stopped before the request was complete.
func InterruptedResponse(requestID, traceID string, d *contract.Decision) *contract.Response {
	resp := &contract.Response{
		RequestID: requestID, TraceID: traceID, Status: contract.StatusFailed, Decision: d,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}, Data: contract.ResponseData{Mode: contract.DataDispatch},
	}
	if d == nil {
		return resp
	}
	for _, id := range d.Chosen {
		resp.Tasks = append(resp.Tasks, contract.TaskReport{
			TaskID: requestID, AgentID: id, Status: contract.TaskFailed, Error: &contract.TaskError{
				Code: contract.TaskOutcomeUnknown, Detail: "the router stopped while it executed the request: the agent may have done it",
			},
		})
	}
	return resp
}
