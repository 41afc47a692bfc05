package rest

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/orchestrations"
)

// Runs gives access to orchestrations. *orchestrations.Service implements it.
type Runs interface {
	Submit(ctx context.Context, sub orchestrations.Submission) (*contract.Orchestration, error)
	Get(ctx context.Context, id string, caller *contract.Caller) (*contract.Orchestration, error)
	// Wait returns when the run has ended or waits for a person, or when the context ends.
	Wait(ctx context.Context, id string, caller *contract.Caller) (*contract.Orchestration, error)
	// Follow emits the events after a sequence number, and returns the run when it has ended
	// or the context ends.
	Follow(ctx context.Context, id string, caller *contract.Caller, after int, emit func(contract.RunEvent) error) (*contract.Orchestration, error)
}

// RunLister lists orchestrations. *orchestrations.Service implements it.
type RunLister interface {
	List(ctx context.Context, query contract.RunQuery, caller *contract.Caller) (*contract.RunPage, error)
}

// RunControl decides about orchestrations. *orchestrations.Service implements it.
type RunControl interface {
	Approve(ctx context.Context, id string, approval contract.Approval, caller *contract.Caller) (*contract.Orchestration, error)
	Cancel(ctx context.Context, id string, caller *contract.Caller) (*contract.Orchestration, error)
}

// RunEraser erases orchestrations. orchestrations.Eraser implements it.
type RunEraser interface {
	// Erase removes a run. It returns contract.CodeConflict while the run is in progress, or if
	// it is erased with its request.
	Erase(ctx context.Context, id string, caller *contract.Caller) error
}

// runAPI holds the handlers of orchestrations. It is immutable.
type runAPI struct {
	runs    Runs
	lister  RunLister
	control RunControl
	eraser  RunEraser
}

func (a *runAPI) routes(cfg *Config) []httpserver.Route {
	const get, post, remove = http.MethodGet, http.MethodPost, http.MethodDelete
	return []httpserver.Route{
		{Method: post, Path: "/api/v1/orchestrations", Scope: contract.ScopeOrchestrate, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.ClassifyLimit, Handle: a.handleOrchestrate},
		{Method: get, Path: "/api/v1/orchestrations", Scope: contract.ScopeOrchestrate, HasScope: mayReadRuns, RateLimit: cfg.ReadLimit, Handle: a.handleRuns},
		{Method: get, Path: "/api/v1/orchestrations/:id", Scope: contract.ScopeOrchestrate, HasScope: mayReadRuns, Handle: a.handleRun},
		{Method: remove, Path: "/api/v1/orchestrations/:id", Scope: contract.ScopeOrchestrate, HasScope: mayEraseRuns, Handle: a.handleEraseRun},
		{Method: get, Path: "/api/v1/orchestrations/:id/events", Scope: contract.ScopeOrchestrate, HasScope: mayReadRuns, Class: httpserver.ClassStream, Handle: a.handleRunEvents},
		{Method: post, Path: "/api/v1/orchestrations/:id/approve", Scope: contract.ScopeApprove, Body: jsonBody(maxRegistrationBytes), Class: httpserver.ClassCompletion, Handle: a.handleApprove},
		{Method: post, Path: "/api/v1/orchestrations/:id/cancel", Scope: contract.ScopeOrchestrate, Class: httpserver.ClassCompletion, Handle: a.handleCancelRun},
	}
}

// mayReadRuns reports whether the caller may see any run. Which ones is checked by Runs.
func mayReadRuns(caller *contract.Caller) bool {
	return caller.HasScope(contract.ScopeOrchestrate) || caller.HasScope(contract.ScopeApprove)
}

// mayEraseRuns reports whether the caller may erase any run, as one that may erase requests
// may. Which ones is checked by RunEraser.
func mayEraseRuns(caller *contract.Caller) bool {
	return caller.HasScope(contract.ScopeOrchestrate) || caller.HasScope(contract.ScopeRouteSubmit)
}

// Names of the events of a run.
const (
	eventRun   = "run"
	eventFinal = string(contract.EventFinal)
)

func (a *runAPI) handleOrchestrate(c *httpserver.Context) error {
	key, mistakes := idempotencyKey(c, false, c.Body())
	var goal contract.Goal
	if err := decodeBody(c, &goal); err != nil {
		return err
	}
	if err := invalidRequest(mistakes); err != nil {
		return err
	}
	started, err := a.runs.Submit(c.Request.Context(), orchestrations.Submission{Goal: &goal, Caller: c.Caller, ID: c.ID, TraceID: c.TraceID(), Idempotency: key})
	if err != nil {
		return err
	}
	if started.Replayed {
		c.SetHeader("Idempotency-Replayed", "true")
	}
	c.SetHeader("Location", "/api/v1/orchestrations/"+started.OrchestrationID)
	switch {
	case prefersEventStream(c.Request.Header["Accept"]):
		return a.streamRun(c, started.OrchestrationID, 0)
	case prefersAsync(c.Request.Header["Prefer"]):
		return writeRun(c, started)
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), a.waitTime(&goal))
	defer cancel()
	run, err := a.runs.Wait(ctx, started.OrchestrationID, c.Caller)
	if err != nil {
		return err
	}
	return writeRun(c, run)
}

// waitTime is how long a caller waits for the end of a run.
func (*runAPI) waitTime(goal *contract.Goal) time.Duration {
	if ms := goal.Constraints.TimeoutMS; ms > 0 && ms < contract.MaxTimeoutMS {
		return time.Duration(ms)*time.Millisecond + time.Second // the run ends first
	}
	return contract.MaxTimeoutMS * time.Millisecond
}

// writeRun responds with 200 if the run has ended, else with 202.
func writeRun(c *httpserver.Context, run *contract.Orchestration) error {
	status := http.StatusAccepted
	if run.Status.Terminal() {
		status = http.StatusOK
	}
	c.SetOutcome(string(run.Status))
	return c.WriteJSON(status, httpserver.MediaTypeJSON, run)
}

func (a *runAPI) handleRuns(c *httpserver.Context) error {
	q := parseQuery(c.Request.URL.RawQuery, "status", "limit", "cursor")
	query := contract.RunQuery{
		Status: contract.OrchestrationStatus(q.enumParam("status",
			string(contract.OrchestrationRunning), string(contract.OrchestrationWaiting), string(contract.OrchestrationDone),
			string(contract.OrchestrationFailed), string(contract.OrchestrationBlocked), string(contract.OrchestrationDegraded))),
		Limit:  q.limitParam(maxPageSize),
		Cursor: q.cursorParam(),
	}
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.lister.List(c.Request.Context(), query, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, page)
}

func (a *runAPI) handleRun(c *httpserver.Context) error {
	id, err := pathID(c, "orchestration")
	if err != nil {
		return err
	}
	run, err := a.runs.Get(c.Request.Context(), id, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, run)
}

func (a *runAPI) handleRunEvents(c *httpserver.Context) error {
	id, err := pathID(c, "orchestration")
	if err != nil {
		return err
	}
	after, err := lastEventID(c.Request)
	if err != nil {
		return err
	}
	if after == maxEventID || c.Request.Method == http.MethodHead {
		if _, err := a.runs.Get(c.Request.Context(), id, c.Caller); err != nil {
			return err
		}
		c.WriteHeader(http.StatusNoContent)
		return nil
	}
	return a.streamRun(c, id, int(min(after, math.MaxInt32)))
}

// streamRun responds with the events of a run, and with its result.
func (a *runAPI) streamRun(c *httpserver.Context, id string, after int) error {
	return c.StreamEvents(httpserver.EventStream{
		EndOnShutdown: true, EndWithToken: true,
		Source: func(ctx context.Context, emit httpserver.EmitFunc) error {
			run, err := a.runs.Follow(ctx, id, c.Caller, after, func(ev contract.RunEvent) error {
				return emit(&httpserver.Event{ID: uint64(ev.Seq), Name: eventRun, Data: ev})
			})
			if err != nil || !run.Status.Terminal() {
				return err
			}
			return emit(&httpserver.Event{ID: maxEventID, Name: eventFinal, Data: run})
		},
	})
}

func (a *runAPI) handleApprove(c *httpserver.Context) error {
	id, err := pathID(c, "orchestration")
	if err != nil {
		return err
	}
	var approval contract.Approval
	if err := decodeBody(c, &approval); err != nil {
		return err
	}
	run, err := a.control.Approve(c.Request.Context(), id, approval, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, run)
}

func (a *runAPI) handleCancelRun(c *httpserver.Context) error {
	id, err := pathID(c, "orchestration")
	if err != nil {
		return err
	}
	run, err := a.control.Cancel(c.Request.Context(), id, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, run)
}

func (a *runAPI) handleEraseRun(c *httpserver.Context) error {
	id, err := pathID(c, "orchestration")
	if err != nil {
		return err
	}
	if err := a.eraser.Erase(c.Request.Context(), id, c.Caller); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}
