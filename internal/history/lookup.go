package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/visibility"
)

// storedRequest is what a lookup found: a record, a request in flight, or what the
// audit log contains. It is owned by one goroutine.
type storedRequest struct {
	id       string
	owner    *contract.Caller // its scopes may be unknown
	record   *requests.Record
	inFlight *inflight.Request
	outcome  *audit.Record
	decision *audit.Record
	toolCall *audit.Record // a call of a tool or an event of an orchestration: id is that of no request
	// elsewhere is set if another live process executes the request in memory: of this
	// one only the decision is stored.
	elsewhere bool
	// unrecorded is set if the outcome is not in the audit log yet.
	unrecorded bool
}

// Timing of lookups.
const (
	// minRecordLife is how long the record of an asynchronous request is stored at
	// least. A younger request without a record is synchronous or was erased.
	minRecordLife = 48 * time.Hour
	// maxAcceptTime is how long after the time in its id a request may still have
	// no trace.
	maxAcceptTime = 5 * time.Second
	// anyAge searches the audit log for as long as any request may take.
	anyAge = 0
)

// searchWindow is how long after the time in the id the audit records of a request
// without a record may have been written. Ids that never existed can be looked up
// as easily as others, so the search reads as little of the log as possible.
func (s *Service) searchWindow(id string) time.Duration {
	if !s.cfg.Requests.Enabled() || time.Since(TimeOfID(id)) > minRecordLife {
		return anyAge
	}
	return contract.MaxTimeoutMS * time.Millisecond
}

// TimeOfID returns the time in a request id (UUIDv7), the zero time for another id.
func TimeOfID(id string) time.Time {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(parsed.Time().UnixTime())
}

// lookup finds a request. The error wraps store.ErrNotFound if nothing is known
// about it. A request that may just begin, or seems interrupted, is looked up
// twice, because it may have begun or ended between two of the sources.
func (s *Service) lookup(ctx context.Context, id string, window time.Duration) (*storedRequest, error) {
	found := &storedRequest{id: id}
	for range 2 {
		if known, err := s.lookupUnended(ctx, found); known || err != nil {
			return found, err
		}
		if err := s.lookupAudit(ctx, found, window); err != nil {
			return nil, err
		}
		if rec := cmp.Or(found.outcome, found.toolCall); rec != nil {
			found.owner = recordCaller(rec)
			return found, nil
		}
		if found.decision == nil && time.Since(TimeOfID(id)) > maxAcceptTime {
			return nil, store.ErrNotFound
		}
		if found.decision != nil {
			window = anyAge // its outcome may be later
		}
	}
	if found.decision == nil {
		return nil, store.ErrNotFound
	}
	found.owner = recordCaller(found.decision)
	found.elsewhere = s.cfg.Peers.IsExecuting(DecidedBy(found.decision))
	return found, nil
}

// lookupUnended finds an asynchronous request, or one that this process executes.
func (s *Service) lookupUnended(ctx context.Context, found *storedRequest) (known bool, err error) {
	switch found.record, err = s.cfg.Requests.Get(ctx, found.id); {
	case err == nil:
		found.owner = &found.record.Caller
		return true, nil
	case !errors.Is(err, store.ErrNotFound):
		return false, err
	}
	found.record = nil
	if found.inFlight = s.cfg.InFlight.Lookup(found.id); found.inFlight != nil {
		found.owner = found.inFlight.Caller()
		return true, nil
	}
	return false, nil
}

func (s *Service) lookupAudit(ctx context.Context, found *storedRequest, window time.Duration) (err error) {
	if err := s.cfg.Recording.Await(ctx, found.id); err != nil {
		return err
	}
	unrecorded := s.cfg.Recording.Unrecorded(found.id) // first: it may be written meanwhile
	var records audit.RequestRecords
	if window == anyAge {
		records, err = s.cfg.Log.Find(ctx, found.id)
	} else {
		records, err = s.cfg.Log.FindWithin(ctx, found.id, window)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	found.outcome, found.decision = records.Outcome, records.Decision
	if found.outcome == nil && unrecorded != nil {
		found.outcome, found.unrecorded = unrecorded, true
	}
	if found.outcome == nil && found.decision == nil {
		found.toolCall = records.ToolCall
	}
	return nil
}

// ReplayState returns the state of a request whose idempotency key was sent again, and a
// function that returns its response.
func (s *Service) ReplayState(ctx context.Context, id string) (idempotency.State, func() (*contract.Response, error), error) {
	found, err := s.lookup(ctx, id, anyAge)
	if err != nil {
		return 0, nil, err
	}
	state := idempotency.Stored
	switch {
	case found.inFlight != nil:
		state = idempotency.Executing
	case found.record != nil && !found.record.State.Terminal() && s.cfg.InFlight.Lookup(id) == nil && found.record.IsAbandoned(s.cfg.IsLive):
		state = idempotency.Orphaned
	case found.record != nil && !found.record.State.Terminal() && found.record.Request.Options.Mode != contract.ModeAsync:
		state = idempotency.Executing
	case found.record == nil && found.outcome == nil:
		state = idempotency.Undecided
	case found.outcome != nil && found.outcome.Content == nil:
		state = idempotency.Erased
	}
	return state, found.response, nil
}

// isVisibleTo reports whether the request exists for the caller. A call of a tool or an
// orchestration exists for its own caller.
func (f *storedRequest) isVisibleTo(caller *contract.Caller) bool {
	if f.toolCall != nil {
		return f.owner.SamePrincipal(caller) || caller.SeesAll()
	}
	request := visibility.StoredRequest{Owner: f.owner, Response: f.response}
	for _, rec := range []*audit.Record{f.outcome, f.decision} {
		if rec != nil {
			request.Agents = append(request.Agents, rec.Agents...)
		}
	}
	return visibility.MaySeeRequest(caller, request)
}

// response returns the response to the request, or its state if there is none yet.
func (f *storedRequest) response() (*contract.Response, error) {
	switch {
	case f.record != nil:
		return f.record.Snapshot(), nil
	case f.inFlight != nil:
		return f.inFlight.State(), nil
	}
	rec := cmp.Or(f.outcome, f.decision, f.toolCall)
	var c Content
	if rec.Content != nil && rec.Kind != audit.KindToolCall && rec.Kind != audit.KindRun {
		if err := strictjson.UnmarshalDeep(rec.Content, &c); err != nil {
			return nil, fmt.Errorf("read the response of request %s: %w", f.id, err)
		}
	}
	if c.Response != nil && rec.Answer != nil {
		var answer clearAnswer
		if err := strictjson.UnmarshalDeep(rec.Answer, &answer); err != nil {
			return nil, fmt.Errorf("read the answer of request %s: %w", f.id, err)
		}
		c.Response.Tasks, c.Response.Data = answer.Tasks, answer.Data
	}
	switch {
	case c.Response != nil && c.ShowLogs:
		return c.Response, nil
	case c.Response != nil:
		return c.Response.WithoutLogs(), nil
	case f.elsewhere:
		return &contract.Response{
			RequestID: f.id, TraceID: rec.TraceID, Status: contract.StatusRunning, Decision: c.Decision,
			Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{},
		}, nil
	case f.outcome == nil && f.decision != nil:
		return InterruptedResponse(f.id, rec.TraceID, c.Decision), nil
	}
	// The content was erased or has expired, which does not change the status; or it is
	// that of a call of a tool, which is no response.
	return &contract.Response{
		RequestID: f.id, TraceID: rec.TraceID, Status: rec.Status,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}, Data: contract.ResponseData{},
	}, nil
}

// sessionKey is the key of the request's session, "" if it had none or the audit
// log does not contain it any more.
func (f *storedRequest) sessionKey() string {
	if f.record != nil {
		return session.Key(&f.record.Caller, f.record.Request.SessionID)
	}
	var c Content
	if f.outcome == nil || f.outcome.Content == nil || strictjson.UnmarshalDeep(f.outcome.Content, &c) != nil {
		return ""
	}
	return c.Session
}
