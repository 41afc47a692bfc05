package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caprouter/caprouter/contract"
)

// sent is one event of a stream as a reader gets it.
type sent struct {
	id, event, data string
	comment         string // of a block that is nothing else
}

// eventsOf reads a whole stream the way the HTML standard (§9.2) says.
func eventsOf(t testing.TB, stream string) []sent {
	t.Helper()
	r := newReader(strings.NewReader(stream))
	var all []sent
	for {
		ev, err := r.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
		all = append(all, ev)
	}
}

type reader struct{ lines *bufio.Reader }

func newReader(r io.Reader) *reader { return &reader{bufio.NewReader(r)} }

// next returns the next event or comment.
func (r *reader) next() (sent, error) {
	var ev sent
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			if ev != (sent{}) || line != "" {
				return ev, errors.New("the stream ends in the middle of an event")
			}
			return ev, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return ev, nil
		}
		name, value, colon := strings.Cut(line, ": ")
		switch {
		case !colon:
			return ev, errors.New("a line without a field: " + line)
		case name == "":
			ev.comment = value
		case name == "id" && ev.id == "":
			ev.id = value
		case name == "event" && ev.event == "":
			ev.event = value
		case name == "data" && ev.data == "":
			ev.data = value
		default:
			return ev, errors.New("an unknown field, or one twice: " + line)
		}
	}
}

// names are the types of events, in order; comments are left out.
func names(events []sent) []string {
	var all []string
	for _, ev := range events {
		if ev.event != "" {
			all = append(all, ev.event)
		}
	}
	return all
}

// eventsConform holds every event to the document: the data of each is an Event
// of its type, or a Problem.
func eventsConform(t testing.TB, doc *openapi3.T, events []sent) {
	t.Helper()
	for i, ev := range events {
		if ev.event == "" {
			continue
		}
		schema, last := "Event", ev.event == string(contract.EventFinal)
		if ev.event == eventError {
			schema, last = "Problem", true
		}
		if last != (i == len(events)-1) {
			t.Errorf("event %d of %d is %s", i+1, len(events), ev.event)
		}
		var value map[string]any
		if err := json.Unmarshal([]byte(ev.data), &value); err != nil {
			t.Errorf("the data of %s is no JSON: %v\n%s", ev.event, err, ev.data)
			continue
		}
		if err := doc.Components.Schemas[schema].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("the data of %s is no %s: %v\n%s", ev.event, schema, err, ev.data)
		}
		if schema == "Event" && value["type"] != ev.event {
			t.Errorf("the event %s says it is %v", ev.event, value["type"])
		}
	}
}

// The streams in the document are streams as they are sent.
func TestExampleStreams(t *testing.T) {
	doc := spec(t)
	found := 0
	for _, path := range []string{"/api/v1/route", "/api/v1/requests/{id}/events"} {
		for _, op := range doc.Paths.Value(path).Operations() {
			content := op.Responses.Value("200").Value.Content[typeEvents]
			if content == nil {
				continue
			}
			for name, example := range content.Examples {
				found++
				t.Run(path+" "+name, func(t *testing.T) {
					events := eventsOf(t, example.Value.Value.(string)+"\n")
					eventsConform(t, doc, events)
					for _, ev := range events {
						if resumable := strings.HasSuffix(path, "/events") && ev.event != string(contract.EventState); ev.event != "" && resumable != (ev.id != "") {
							t.Errorf("%s has the id %q", ev.event, ev.id)
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

	noLater   = refusing(errMissing)
	lateLater = refusing(errLate)
)

// refusing answers everything with an error.
func refusing(err error) fakeLater {
	return fakeLater{
		stream: func(context.Context, *contract.Request, func(*contract.Event)) (*contract.Response, error) {
			return nil, err
		},
		submit:    func(*contract.Request) (*contract.Response, error) { return nil, err },
		stored:    func(string) (*contract.Response, error) { return nil, err },
		erase:     func(string) error { return err },
		events:    func(context.Context, uint64, func(uint64, *contract.Event) error) error { return err },
		result:    func(contract.TaskGrant, *contract.Result) error { return err },
		progress:  func(contract.TaskGrant, *contract.Progress) error { return err },
		decisions: func(contract.DecisionQuery) (*contract.DecisionPage, error) { return nil, err },
		tickets:   func(contract.TicketQuery) (*contract.TicketPage, error) { return nil, err },
		ticket:    func(string, string) (*contract.Ticket, error) { return nil, err },
	}
}

// again is an answer that was given before, to a request with another id.
func again(answer func(*contract.Request) *contract.Response) func(*contract.Request) *contract.Response {
	return func(req *contract.Request) *contract.Response {
		first := *req
		first.RequestID = testRequest
		r := answer(&first)
		r.Replayed = true
		return r
	}
}

// breaksOff is a core that fails after its first event.
func breaksOff(_ context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
	emit(happened(completed(req))[0])
	return nil, errors.New("secret")
}
