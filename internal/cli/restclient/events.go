package restclient

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/rest"
)

// eventStream reads the server-sent events of a response. One goroutine owns it.
type eventStream struct {
	client *Client
	resp   *http.Response
	lines  *bufio.Scanner
}

// openEvents sends a request whose response is a stream of events. The stream has no time
// limit of its own, because a person may take long to decide about a call. The caller
// closes it.
func (c *Client) openEvents(ctx context.Context, method string, at *url.URL, body requestBody) (*eventStream, error) {
	req, err := c.newRequest(ctx, method, at, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	unlimited := *c.http
	unlimited.Timeout = 0
	resp, err := c.do(&unlimited, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		switch problem, err := c.decodeResponse(resp, new(struct{})); {
		case err != nil:
			return nil, err
		case problem != nil:
			return nil, c.ProblemError(problem)
		}
		return nil, fmt.Errorf("%s answered %s without a stream of events", c.base, resp.Status)
	}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxAnswerBytes))
	lines.Buffer(nil, maxAnswerBytes)
	return &eventStream{client: c, resp: resp, lines: lines}, nil
}

func (s *eventStream) close() { _ = s.resp.Body.Close() }

// next returns the name and the data of the next event. Every stream has a last event,
// after which next is not called, so an end before is io.ErrUnexpectedEOF.
func (s *eventStream) next() (name string, data []byte, err error) {
	for s.lines.Scan() {
		if text, ok := strings.CutPrefix(s.lines.Text(), "event: "); ok {
			name = text
		}
		if text, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			return name, []byte(text), nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return "", nil, err
	}
	return "", nil, io.ErrUnexpectedEOF
}

// decode decodes the data of an event into v.
func (s *eventStream) decode(data []byte, v any) error { return s.client.decodeBody(data, v, s.resp) }

// FollowEvents passes the events of a request to handle until the final one.
func (c *Client) FollowEvents(ctx context.Context, id string, handle func(*contract.Event)) (*contract.Response, error) {
	stream, err := c.openEvents(ctx, http.MethodGet, c.base.JoinPath("/api/v1/requests", id, "events"), requestBody{})
	if err != nil {
		return nil, err
	}
	defer stream.close()
	for {
		_, data, err := stream.next()
		if err != nil {
			return nil, fmt.Errorf("events of request %s: the stream ended without a final event: %w", id, err)
		}
		var ev contract.Event
		if err := stream.decode(data, &ev); err != nil {
			return nil, fmt.Errorf("events of request %s: %w", id, err)
		}
		handle(&ev)
		if ev.Type == contract.EventFinal {
			return ev.Response, nil
		}
	}
}

// StreamRun submits a goal and passes its events to handle until it has ended.
func (c *Client) StreamRun(ctx context.Context, goal *contract.Goal, handle func(id string, ev *contract.RunEvent)) (*contract.Orchestration, error) {
	body, err := newJSONBody(goal)
	if err != nil {
		return nil, err
	}
	stream, err := c.openEvents(ctx, http.MethodPost, c.base.JoinPath(RunsPath), body)
	if err != nil {
		return nil, err
	}
	defer stream.close()
	location := stream.resp.Header.Get("Location")
	id := location[strings.LastIndexByte(location, '/')+1:]
	for {
		name, data, err := stream.next()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("the orchestration continues: caprouter orchestrate cancel %s ends it", id)
		case err != nil:
			return nil, fmt.Errorf("the stream ended before the orchestration; its state is at %s: %w", c.base.JoinPath(RunsPath, id), err)
		case name == "run":
			var ev contract.RunEvent
			if err := stream.decode(data, &ev); err != nil {
				return nil, err
			}
			handle(id, &ev)
		case name == string(contract.EventFinal):
			run := new(contract.Orchestration)
			return run, stream.decode(data, run)
		default: // a problem ends the stream
			var p rest.UnsupportedProblem
			if err := stream.decode(data, &p); err != nil {
				return nil, err
			}
			return nil, c.ProblemError(&p)
		}
	}
}
