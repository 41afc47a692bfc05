package rest

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

func (a *api) handleRequest(c *httpserver.Context) error {
	return writeStored(c, a.deps.Requests.Request)
}

func (a *api) handleCancel(c *httpserver.Context) error {
	return writeStored(c, a.deps.Requests.Cancel)
}

// writeStored responds with the current state of a stored request, with status
// 200 whatever the state is.
func writeStored(
	c *httpserver.Context,
	load func(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error),
) error {
	id, err := pathID(c, "request")
	if err != nil {
		return err
	}
	resp, err := load(c.Request.Context(), id, c.Caller)
	if err != nil {
		return err
	}
	setDecisionHeaders(c, resp.Decision)
	return writeResponse(c, http.StatusOK, resp)
}

func (a *api) handleErase(c *httpserver.Context) error {
	id, err := pathID(c, "request")
	if err != nil {
		return err
	}
	if err := a.deps.Requests.Erase(c.Request.Context(), id, c.Caller); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *api) handleFeedback(c *httpserver.Context) error {
	id, err := pathID(c, "request")
	if err != nil {
		return err
	}
	var req contract.FeedbackRequest
	if err := decodeBody(c, &req); err != nil {
		return err
	}
	feedback, err := a.deps.Feedback.AddFeedback(c.Request.Context(), id, &req, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, feedback)
}

// maxEventID is the id of an event "final" whose sequence number is unknown,
// because the events of the request were deleted. No event follows it, so a
// reader that resumes after it gets 204.
const maxEventID = math.MaxUint64

func (a *api) handleEvents(c *httpserver.Context) error {
	id, err := pathID(c, "request")
	if err != nil {
		return err
	}
	after, err := lastEventID(c.Request)
	if err != nil {
		return err
	}
	if ended := after == maxEventID; ended || c.Request.Method == http.MethodHead { // HEAD would wait for events it does not get
		return a.writeNoEvents(c, id, ended)
	}
	return c.StreamEvents(httpserver.EventStream{
		SetHeaders:    setEventHeaders,
		EndOnShutdown: true,
		EndWithToken:  true,
		Source: func(ctx context.Context, emit httpserver.EmitFunc) error {
			return a.deps.Requests.Events(ctx, id, c.Caller, after, func(seq uint64, ev *contract.Event) error {
				if seq == 0 && ev.Type == contract.EventFinal {
					seq = maxEventID
				}
				return emit(newEvent(seq, ev))
			})
		},
	})
}

// newEvent returns an event for a reader. Progress after which a reader cannot
// resume may be dropped if the reader is slow.
func newEvent(seq uint64, ev *contract.Event) *httpserver.Event {
	return &httpserver.Event{
		ID: seq, Name: string(ev.Type), Data: ev,
		Droppable: seq == 0 && ev.Type == contract.EventTaskProgress,
	}
}

// setEventHeaders sets the headers of the decision or response if the first event
// of the stream has one.
func setEventHeaders(c *httpserver.Context, first *httpserver.Event) {
	ev, ok := first.Data.(*contract.Event)
	switch {
	case !ok:
	case ev.Response != nil:
		setResponseHeaders(c, ev.Response)
	default:
		setDecisionHeaders(c, ev.Decision)
	}
}

// writeNoEvents responds like a stream without events if the caller may see the
// request.
func (a *api) writeNoEvents(c *httpserver.Context, id string, ended bool) error {
	if _, err := a.deps.Requests.Request(c.Request.Context(), id, c.Caller); err != nil {
		return err
	}
	if ended {
		c.WriteHeader(http.StatusNoContent)
		return nil
	}
	c.SetHeader("Content-Type", httpserver.MediaTypeEvents)
	c.WriteHeader(http.StatusOK)
	return nil
}

// lastEventID returns the id of the last event that the reader received, or 0.
// The header wins over the query, because a browser that reconnects sets the
// header and repeats the URL of its first request.
func lastEventID(r *http.Request) (uint64, error) {
	q := parseQuery(r.URL.RawQuery, "after")
	text := q.param("after", isDigits, "must be the id of an event")
	pointer, what := "/after", ""
	if header := r.Header["Last-Event-Id"]; len(header) == 1 && header[0] != "" {
		text, pointer, what = header[0], "", "the header Last-Event-ID "
	} else if len(header) > 1 {
		q.details = append(q.details, contract.ErrorDetail{Detail: "the header Last-Event-ID is given more than once"})
	}
	if err := q.err(); err != nil || text == "" {
		return 0, err
	}
	after, err := strconv.ParseUint(text, 10, 64)
	if err != nil || !isDigits(text) {
		return 0, contract.InvalidRequest(pointer, what+"must be the id of an event that was sent")
	}
	return after, nil
}

// outcomeNames returns the statuses of requests in the decision log.
func outcomeNames() []string {
	return []string{
		string(contract.StatusCompleted), string(contract.StatusPartial), string(contract.StatusFailed),
		string(contract.StatusClarify), string(contract.StatusUnsupported), string(contract.StatusProposed),
		string(contract.StatusCancelled),
	}
}

// sourceNames returns the sources of a classification.
func sourceNames() []string {
	return []string{
		string(contract.SourceLLM), string(contract.SourceLexical), string(contract.SourceCache), string(contract.SourcePinned),
	}
}

func (a *api) handleDecisions(c *httpserver.Context) error {
	q := parseQuery(c.Request.URL.RawQuery,
		"since", "agent", "outcome", "intent", "source", "below", "fallback", "feedback", "request_id", "limit", "cursor")
	query := contract.DecisionQuery{
		Since:     q.timeParam("since"),
		Agent:     q.param("agent", contract.ValidAgentID, "is not an agent id ("+contract.AgentIDPattern+")"),
		Outcome:   contract.Status(q.enumParam("outcome", outcomeNames()...)),
		Intent:    q.param("intent", isLabel, "is not the name of an intent"),
		Source:    contract.Source(q.enumParam("source", sourceNames()...)),
		Below:     q.confidenceParam("below"),
		Fallback:  q.enumParam("fallback", contract.AnyFallback, capabilities.FallbackAnswer, capabilities.FallbackUnsupported, capabilities.FallbackPropose),
		Feedback:  contract.Verdict(q.enumParam("feedback", string(contract.VerdictCorrect), string(contract.VerdictMisroute))),
		RequestID: q.param("request_id", isValidID, "is not the id of a request"),
		Limit:     q.limitParam(maxPageSize),
		Cursor:    q.cursorParam(),
	}
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.deps.Decisions.Decisions(c.Request.Context(), query, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, page)
}
