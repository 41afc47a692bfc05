package rest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

// checkEvents checks that the data of each event is an Event of its type, a Problem, or the result
// of a tool.
func checkEvents(t testing.TB, doc *openapi3.T, events []testkit.SSE) {
	t.Helper()
	for i, ev := range events {
		if ev.Name == "" {
			continue
		}
		schema, last := "Event", ev.Name == string(contract.EventFinal)
		switch ev.Name {
		case httpserver.EventError:
			schema, last = "Problem", true
		case eventProgress:
			schema = "ActionProgress"
		case eventResult:
			schema, last = "ActionResult", true
		}
		if last != (i == len(events)-1) {
			t.Errorf("event %d of %d: got %s", i+1, len(events), ev.Name)
		}
		var value map[string]any
		if err := json.Unmarshal([]byte(ev.Data), &value); err != nil {
			t.Errorf("got data of %s that is not JSON: %v\n%s", ev.Name, err, ev.Data)
			continue
		}
		if err := doc.Components.Schemas[schema].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("got data of %s that is not a %s: %v\n%s", ev.Name, schema, err, ev.Data)
		}
		if schema == "Event" && value["type"] != ev.Name {
			t.Errorf("event %s: got type %v", ev.Name, value["type"])
		}
	}
}

// The examples of streams in the document have the format of real streams.
func TestOpenAPI_ExampleStreamsAreValid(t *testing.T) {
	doc := spec(t)
	found := 0
	for _, path := range []string{"/api/v1/route", "/api/v1/requests/{id}/events"} {
		for _, op := range doc.Paths.Value(path).Operations() {
			content := op.Responses.Value("200").Value.Content[httpserver.MediaTypeEvents]
			if content == nil {
				continue
			}
			for name, example := range content.Examples {
				found++
				t.Run(path+" "+name, func(t *testing.T) {
					events := testkit.ReadSSE(t, example.Value.Value.(string)+"\n")
					checkEvents(t, doc, events)
					for _, ev := range events {
						if resumable := strings.HasSuffix(path, "/events") && ev.Name != string(contract.EventState); ev.Name != "" && resumable != (ev.ID != "") {
							t.Errorf("%s: got id %q", ev.Name, ev.ID)
						}
					}
				})
			}
		}
	}
	if found != 4 {
		t.Errorf("got %d examples of streams, want 4", found)
	}
}

var (
	errMissing = &contract.Error{Code: contract.CodeNotFound, Message: "there is no such thing"}
	errLate    = &contract.Error{Code: contract.CodeConflict, Message: "it is too late, or too early"}

	notFoundLater = failWith(errMissing)
	conflictLater = failWith(errLate)
)

// failWith returns a fakeLater that fails with err.
func failWith(err error) fakeLater {
	return fakeLater{
		stream: func(context.Context, *contract.Request, func(*contract.Event)) (*contract.Response, error) {
			return nil, err
		},
		submit:    func(*contract.Request) (*contract.Response, error) { return nil, err },
		stored:    func(string) (*contract.Response, error) { return nil, err },
		erase:     func(string) error { return err },
		feedback:  func(string, *contract.FeedbackRequest) (*contract.Feedback, error) { return nil, err },
		events:    func(context.Context, uint64, func(uint64, *contract.Event) error) error { return err },
		result:    func(contract.TaskGrant, *contract.Result) error { return err },
		progress:  func(contract.TaskGrant, *contract.Progress) error { return err },
		decisions: func(contract.DecisionQuery) (*contract.DecisionPage, error) { return nil, err },
		tickets:   func(contract.TicketQuery) (*contract.TicketPage, error) { return nil, err },
		ticket:    func(string, string) (*contract.Ticket, error) { return nil, err },
	}
}

// replayedOf returns responses that were stored for a request with another id.
func replayedOf(answer func(*contract.Request) *contract.Response) func(*contract.Request) *contract.Response {
	return func(req *contract.Request) *contract.Response {
		first := *req
		first.RequestID = testRequest
		r := answer(&first)
		r.Replayed = true
		return r
	}
}

// failAfterFirstEvent is a stream that fails after its first event.
func failAfterFirstEvent(_ context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
	emit(eventsOf(completedResponse(req))[0])
	return nil, errors.New("secret")
}
