package rest

import (
	"context"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

func (s *Server) handleRequest(x *exchange, c echo.Context) error {
	return s.stored(x, c, s.deps.Router.Request)
}

func (s *Server) handleCancel(x *exchange, c echo.Context) error {
	return s.stored(x, c, s.deps.Router.Cancel)
}

// stored answers with a request as it is by now: 200 whatever its status.
func (s *Server) stored(
	x *exchange, c echo.Context,
	find func(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error),
) error {
	id, err := pathID(c, "request")
	if err != nil {
		return err
	}
	resp, err := find(x.req.Context(), id, x.caller)
	if err != nil {
		return err
	}
	setDecision(x, resp.Decision)
	return s.writeResponse(x, http.StatusOK, resp)
}

func (s *Server) handleErase(x *exchange, c echo.Context) error {
	id, err := pathID(c, "request")
	if err != nil {
		return err
	}
	if err := s.deps.Router.Erase(x.req.Context(), id, x.caller); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) handleEvents(x *exchange, c echo.Context) error {
	id, err := pathID(c, "request")
	if err != nil {
		return err
	}
	after, err := resumeAfter(x.req)
	if err != nil {
		return err
	}
	if ended := after == seqEnd; ended || x.req.Method == http.MethodHead { // HEAD would wait for events that it does not get
		return s.noEvents(x, id, ended)
	}
	return s.pump(x, s.stopping, func(ctx context.Context, emit emitter) error {
		return s.deps.Router.Events(ctx, id, x.caller, after, func(seq uint64, ev *contract.Event) error {
			if seq == 0 && ev.Type == contract.EventFinal {
				seq = seqEnd
			}
			return emit(seq, ev)
		})
	})
}

// noEvents answers like a stream without events, for a request that the caller
// may see.
func (s *Server) noEvents(x *exchange, id string, ended bool) error {
	if _, err := s.deps.Router.Request(x.req.Context(), id, x.caller); err != nil {
		return err
	}
	if ended {
		x.WriteHeader(http.StatusNoContent)
		return nil
	}
	x.set("Content-Type", typeEvents)
	x.WriteHeader(http.StatusOK)
	return nil
}

// resumeAfter returns the sequence of the last event the reader has, 0 when it
// has none. A browser that connects again sets the header and keeps the URL, so
// the header is the newer of the two.
func resumeAfter(r *http.Request) (uint64, error) {
	q := readQuery(r.URL.RawQuery, "after")
	text := q.text("after", digits, "must be the id of an event")
	name := "/after"
	if header := r.Header["Last-Event-Id"]; len(header) == 1 && header[0] != "" {
		text, name = header[0], ""
	} else if len(header) > 1 {
		q.details = append(q.details, contract.ErrorDetail{Detail: "the header Last-Event-ID is given more than once"})
	}
	if err := q.err(); err != nil || text == "" {
		return 0, err
	}
	after, err := strconv.ParseUint(text, 10, 64)
	if err != nil || !digits(text) {
		return 0, invalid([]contract.ErrorDetail{{Pointer: name, Detail: "the last event's id must be one that was sent"}})
	}
	return after, nil
}

// outcomes are the statuses that a request in the decision log can have.
func outcomes() []string {
	return []string{
		string(contract.StatusCompleted), string(contract.StatusPartial), string(contract.StatusFailed),
		string(contract.StatusClarify), string(contract.StatusUnsupported), string(contract.StatusProposed),
		string(contract.StatusCancelled),
	}
}

func (s *Server) handleDecisions(x *exchange, _ echo.Context) error {
	q := readQuery(x.req.URL.RawQuery, "since", "agent", "outcome", "limit", "cursor")
	query := contract.DecisionQuery{
		Since:   q.time("since"),
		Agent:   q.text("agent", contract.ValidAgentID, "is not an agent id ("+contract.AgentIDPattern+")"),
		Outcome: contract.Status(q.oneOf("outcome", outcomes()...)),
		Limit:   q.limit(),
		Cursor:  q.cursor(),
	}
	if err := q.err(); err != nil {
		return err
	}
	page, err := s.deps.Router.Decisions(x.req.Context(), query, x.caller)
	if err != nil {
		return err
	}
	x.set("Cache-Control", "no-store")
	return s.writeJSON(x, http.StatusOK, typeJSON, page)
}
