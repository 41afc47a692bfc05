package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A stored request is returned with status 200, even if it failed.
func TestHandleRequest_StoredRequests(t *testing.T) {
	running := func(id string) *contract.Response {
		r := storedResponse(id)
		r.Status, r.Tasks[0].Status, r.Data = contract.StatusRunning, contract.TaskRunning, contract.ResponseData{}
		return r
	}
	asked := &contract.Request{RequestID: testRequest}
	for status, resp := range map[contract.Status]*contract.Response{
		contract.StatusAccepted:    acceptedResponse(testRequest),
		contract.StatusRunning:     running(testRequest),
		contract.StatusCompleted:   completedResponse(asked),
		contract.StatusFailed:      failedResponse(asked),
		contract.StatusClarify:     undecidedResponse(asked),
		contract.StatusUnsupported: unsupportedResponse(asked),
		contract.StatusProposed:    proposedResponse(asked),
	} {
		t.Run(string(status), func(t *testing.T) {
			var id string
			core := &fakeBackend{later: fakeLater{stored: func(asked string) (*contract.Response, error) {
				id = asked
				return resp, nil
			}}}
			srv := startServer(t, httpserver.Config{}, core)
			got := srv.get(t, "/api/v1/requests/"+testRequest)
			var r contract.Response
			if err := json.Unmarshal(got.body, &r); err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != http.StatusOK || r.Status != status || id != testRequest || got.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %s for %s, want 200 and %s", got.StatusCode, r.Status, id, status)
			}
			if decided := got.Header.Get("X-Router-Decision-Id") != ""; decided != (resp.Decision != nil) {
				t.Errorf("got headers of a decision: %t", decided)
			}
		})
	}
}

// An invalid id is not found, and does not reach the router, which would use it as a key.
func TestPathID_RejectsInvalidIDs(t *testing.T) {
	core := &fakeBackend{later: failWith(errLate)} // 409 would show that the router was called
	srv := startServer(t, httpserver.Config{}, core)
	for _, id := range []string{"a.b", "*", "%3E", "a%20b", "a%2Fb", "%00", "é", "%2E%2E", strings.Repeat("a", 65)} {
		for _, op := range []struct{ method, path string }{
			{"GET", "/api/v1/requests/" + id},
			{"DELETE", "/api/v1/requests/" + id},
			{"GET", "/api/v1/requests/" + id + "/events"},
			{"POST", "/api/v1/requests/" + id + "/cancel"},
			{"GET", "/api/v1/tickets/" + id},
			{"POST", "/api/v1/tickets/" + id + "/close"},
		} {
			if got := srv.send(t, op.method, op.path, nil); got.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: got %d, want 404", op.method, op.path, got.StatusCode)
			}
		}
	}
}

func TestHandleEvents_Resume(t *testing.T) {
	var after *uint64
	core := &fakeBackend{later: fakeLater{events: func(_ context.Context, seq uint64, emit func(uint64, *contract.Event) error) error {
		after = &seq
		return emit(seq+1, finalEvent(storedResponse(testRequest)))
	}}}
	srv := startServer(t, httpserver.Config{}, core)
	cases := []struct {
		name, query string
		headers     []string
		want        int64 // -1 = rejected
	}{
		{"from the beginning", "", nil, 0},
		{"header", "", []string{"Last-Event-ID", "41"}, 41},
		{"query", "?after=41", nil, 41},
		{"header and query", "?after=7", []string{"Last-Event-ID", "41"}, 41},
		{"empty header", "?after=7", []string{"Last-Event-ID", ""}, 7},
		{"zero", "?after=0", nil, 0},
		{"words", "?after=last", nil, -1},
		{"empty", "?after=", nil, -1},
		{"negative", "", []string{"Last-Event-ID", "-1"}, -1},
		{"signed", "", []string{"Last-Event-ID", "+1"}, -1},
		{"above the range", "", []string{"Last-Event-ID", "18446744073709551616"}, -1},
		{"two headers", "", []string{"Last-Event-ID", "1", "Last-Event-ID", "2"}, -1},
		{"two queries", "?after=1&after=2", nil, -1},
		{"another parameter", "?before=1", nil, -1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			after = nil
			got := srv.send(t, http.MethodGet, eventsPath+c.query, nil, c.headers...)
			if c.want < 0 {
				if got.StatusCode != http.StatusUnprocessableEntity || after != nil {
					t.Errorf("got %d %s, want 422", got.StatusCode, got.body)
				}
				if len(c.headers) > 0 && !strings.Contains(string(got.body), "the header Last-Event-ID ") {
					t.Errorf("got %s, want the name of the header in it", got.body)
				}
				return
			}
			if got.StatusCode != http.StatusOK || after == nil || *after != uint64(c.want) {
				t.Fatalf("got %d, and a request for the events after %v, want %d", got.StatusCode, after, c.want)
			}
			if id := testkit.ReadSSE(t, string(got.body))[0].ID; id != strconv.FormatInt(c.want+1, 10) {
				t.Errorf("got id %q, want %d", id, c.want+1)
			}
		})
	}
}

// If events were deleted, an event with the state replaces them. A reader cannot resume after it.
func TestHandleEvents_StateHasNoID(t *testing.T) {
	core := &fakeBackend{later: fakeLater{events: func(_ context.Context, _ uint64, emit func(uint64, *contract.Event) error) error {
		state := finalEvent(acceptedResponse(testRequest))
		state.Type = contract.EventState
		if err := emit(0, state); err != nil {
			return err
		}
		return emit(9, finalEvent(storedResponse(testRequest)))
	}}}
	got := startServer(t, httpserver.Config{}, core).get(t, eventsPath)
	events := testkit.ReadSSE(t, string(got.body))
	if diff := cmp.Diff([]string{"state", "final"}, testkit.SSENames(events)); diff != "" {
		t.Fatalf("events differ (-want +got):\n%s", diff)
	}
	if events[0].ID != "" || events[1].ID != "9" {
		t.Errorf("got the ids %q and %q, want none and 9", events[0].ID, events[1].ID)
	}
}

// A reader that has the last event gets 204, so that a browser stops reconnecting.
func TestHandleEvents_NoEventFollowsTheLast(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	if got := srv.get(t, eventsPath, "Last-Event-ID", "5"); got.StatusCode != http.StatusNoContent || len(got.body) != 0 {
		t.Errorf("got %d %s, want 204", got.StatusCode, got.body)
	}
}

// If all events were deleted, the final event has the largest id, so that a browser that resumes
// gets 204. Callers that may not see the request get 404.
func TestHandleEvents_FinalEventOfDeletedEvents(t *testing.T) {
	core := &fakeBackend{later: fakeLater{events: func(_ context.Context, _ uint64, emit func(uint64, *contract.Event) error) error {
		state := finalEvent(storedResponse(testRequest))
		state.Type = contract.EventState
		return errors.Join(emit(0, state), emit(0, finalEvent(storedResponse(testRequest))))
	}}}
	srv := startServer(t, httpserver.Config{}, core)
	events := testkit.ReadSSE(t, string(srv.get(t, eventsPath).body))
	if diff := cmp.Diff([]string{"state", "final"}, testkit.SSENames(events)); diff != "" {
		t.Fatalf("events differ (-want +got):\n%s", diff)
	}
	if events[0].ID != "" || events[1].ID == "" {
		t.Fatalf("got the ids %q and %q, want none and one", events[0].ID, events[1].ID)
	}
	if got := srv.get(t, eventsPath, "Last-Event-ID", events[1].ID); got.StatusCode != http.StatusNoContent || len(got.body) != 0 {
		t.Errorf("got %d %s after the last event, want 204", got.StatusCode, got.body)
	}
	core.later.stored = func(string) (*contract.Response, error) { return nil, errMissing }
	if got := srv.get(t, eventsPath, "Last-Event-ID", events[1].ID); got.StatusCode != http.StatusNotFound {
		t.Errorf("hidden request: got %d, want 404", got.StatusCode)
	}
}

// HEAD checks access to the stream and does not wait for events.
func TestHandleEvents_HeadDoesNotRead(t *testing.T) {
	read := false
	core := &fakeBackend{later: fakeLater{events: func(context.Context, uint64, func(uint64, *contract.Event) error) error {
		read = true
		return nil
	}}}
	srv := startServer(t, httpserver.Config{}, core)
	if got := srv.do(t, http.MethodHead, eventsPath, ""); got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != httpserver.MediaTypeEvents {
		t.Errorf("got %d %s, want 200 and %s", got.StatusCode, got.Header.Get("Content-Type"), httpserver.MediaTypeEvents)
	}
	core.later.stored = func(string) (*contract.Response, error) { return nil, errMissing }
	if got := srv.do(t, http.MethodHead, eventsPath, ""); got.StatusCode != http.StatusNotFound {
		t.Errorf("got %d, want 404", got.StatusCode)
	}
	if read {
		t.Error("got events read by a HEAD request, want only the check of access")
	}
}

func TestHandleDecisions_ParsesQuery(t *testing.T) {
	var asked *contract.DecisionQuery
	core := &fakeBackend{later: fakeLater{decisions: func(q contract.DecisionQuery) (*contract.DecisionPage, error) {
		asked = &q
		return &contract.DecisionPage{}, nil
	}}}
	srv := startServer(t, httpserver.Config{}, core)
	at := time.Date(2026, 1, 2, 14, 4, 5, 0, time.UTC)
	cases := []struct {
		query    string
		want     contract.DecisionQuery
		pointers []string // of the errors
	}{
		{query: ""},
		{query: "since=2026-01-02T14:04:05Z", want: contract.DecisionQuery{Since: at}},
		{query: "since=2026-01-02T15:04:05%2B01:00", want: contract.DecisionQuery{Since: at}},
		{query: "agent=quality_agent&outcome=clarification_required&limit=1&cursor=abc%3D", want: contract.DecisionQuery{
			Agent: "quality_agent", Outcome: contract.StatusClarify, Limit: 1, Cursor: "abc=",
		}},
		{query: "limit=1000", want: contract.DecisionQuery{Limit: 1000}},
		{query: "below=0.7&fallback=true&source=lexical&intent=revis%C3%A3o", want: contract.DecisionQuery{
			Below: 0.7, Fallback: contract.AnyFallback, Source: contract.SourceLexical, Intent: "revisão",
		}},
		{query: "feedback=misroute", want: contract.DecisionQuery{Feedback: contract.VerdictMisroute}},
		{query: "feedback=true", pointers: []string{"/feedback"}},
		{query: "below=1&fallback=B", want: contract.DecisionQuery{Below: 1, Fallback: "B"}},
		{query: "request_id=" + testRequest, want: contract.DecisionQuery{RequestID: testRequest}},
		{query: "below=0&fallback=D&source=model&intent=&request_id=%2F", pointers: []string{"/below", "/fallback", "/intent", "/request_id", "/source"}},
		{query: "below=1.1", pointers: []string{"/below"}},
		{query: "below=NaN", pointers: []string{"/below"}},
		{query: "below=0x1p-2", pointers: []string{"/below"}},
		{query: "intent=%ff", pointers: []string{"/intent"}},
		{query: "intent=" + strings.Repeat("a", 65), pointers: []string{"/intent"}},
		{query: "since=yesterday", pointers: []string{"/since"}},
		{query: "since=2026-01-02T15:04:05+01:00", pointers: []string{"/since"}},
		{query: "since=2026-01-02", pointers: []string{"/since"}},
		{query: "since=1970-01-01T00:00:00Z", want: contract.DecisionQuery{Since: time.Unix(0, 0).UTC()}},
		{query: "since=9999-12-31T23:59:59Z", want: contract.DecisionQuery{Since: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}},
		{query: "since=0000-01-01T00:00:00Z", pointers: []string{"/since"}},
		{query: "since=1969-12-31T23:59:59Z", pointers: []string{"/since"}},
		{query: "since=1970-01-01T00:00:00%2B01:00", pointers: []string{"/since"}},
		{query: "since=9999-12-31T23:59:59-01:00", pointers: []string{"/since"}},
		{query: "limit=0", pointers: []string{"/limit"}},
		{query: "limit=1001", pointers: []string{"/limit"}},
		{query: "limit=%2B5", pointers: []string{"/limit"}},
		{query: "limit=", pointers: []string{"/limit"}},
		{query: "limit=99999999999999999999", pointers: []string{"/limit"}},
		{query: "agent=../etc", pointers: []string{"/agent"}},
		{query: "outcome=running", pointers: []string{"/outcome"}},
		{query: "outcome=accepted", pointers: []string{"/outcome"}},
		{query: "cursor=" + strings.Repeat("a", 513), pointers: []string{"/cursor"}},
		{query: "cursor=%0a", pointers: []string{"/cursor"}},
		{query: "limit=5&limit=6", pointers: []string{"/limit"}},
		{query: "limt=5", pointers: []string{"/limt"}},
		{query: "a~b/c=5", pointers: []string{"/a~0b~1c"}},
		{query: "a=%zz", pointers: []string{""}},
		{query: "limit=5;agent=a", pointers: []string{""}},
		{query: "outcome=x&limit=x&agent=X&since=x&zz=x&yy=x", pointers: []string{"/agent", "/limit", "/outcome", "/since", "/yy"}},
	}
	for _, c := range cases {
		t.Run(c.query, func(t *testing.T) {
			asked = nil
			got := srv.get(t, "/api/v1/decisions?"+c.query)
			if c.pointers != nil {
				if diff := cmp.Diff(c.pointers, pointers(problemOf(t, got))); diff != "" || got.StatusCode != http.StatusUnprocessableEntity || asked != nil {
					t.Errorf("got %d, want 422; pointers (-want +got):\n%s", got.StatusCode, diff)
				}
				return
			}
			if asked == nil {
				t.Fatalf("got %d %s, want 200", got.StatusCode, got.body)
			}
			if diff := cmp.Diff(c.want, *asked); diff != "" {
				t.Errorf("the query differs (-want +got):\n%s", diff)
			}
		})
	}
}

// The outcomes of the query are the terminal statuses, and the document lists the same.
func TestOutcomes_AreTerminalStatuses(t *testing.T) {
	var terminal []string
	for _, status := range contractConstants(t)["Status"] {
		if contract.Status(status).Terminal() {
			terminal = append(terminal, status)
		}
	}
	if diff := cmp.Diff(sorted(terminal), sorted(outcomeNames())); diff != "" {
		t.Errorf("outcomes differ (-terminal +outcomes):\n%s", diff)
	}
	var documented []string
	for _, p := range spec(t).Paths.Value("/api/v1/decisions").Get.Parameters {
		if p.Value.Name == "outcome" {
			for _, v := range p.Value.Schema.Value.Enum {
				documented = append(documented, v.(string))
			}
		}
	}
	if diff := cmp.Diff(sorted(documented), sorted(outcomeNames())); diff != "" {
		t.Errorf("outcomes differ (-document +outcomes):\n%s", diff)
	}
}

func TestHandleTickets_ParsesQuery(t *testing.T) {
	var asked *contract.TicketQuery
	core := &fakeBackend{later: fakeLater{tickets: func(q contract.TicketQuery) (*contract.TicketPage, error) {
		asked = &q
		return &contract.TicketPage{}, nil
	}}}
	srv := startServer(t, httpserver.Config{}, core)
	for query, want := range map[string]*contract.TicketQuery{
		"":                                    {},
		"?status=closed&limit=50&cursor=next": {Status: contract.TicketClosed, Limit: 50, Cursor: "next"},
		"?status=":                            nil,
		"?status=Open":                        nil,
		"?state=open":                         nil,
	} {
		asked = nil
		got := srv.get(t, "/api/v1/tickets"+query)
		if refused := got.StatusCode == http.StatusUnprocessableEntity; refused != (want == nil) {
			t.Errorf("%q: got %d %s", query, got.StatusCode, got.body)
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("%q: the query differs (-want +got):\n%s", query, diff)
		}
	}
}

func TestHandleCloseTicket(t *testing.T) {
	var id, note string
	core := &fakeBackend{later: fakeLater{ticket: func(i, n string) (*contract.Ticket, error) {
		id, note = i, n
		return testTicketOf(n), nil
	}}}
	srv := startServer(t, httpserver.Config{}, core)
	cases := []struct {
		name, body string
		status     int
		note       string
	}{
		{"with a note", `{"note":"done"}`, 200, "done"},
		{"empty note", `{"note":""}`, 200, ""},
		{"no note", `{}`, 200, ""},
		{"no body", ``, 200, ""},
		{"not JSON", `note`, 400, ""},
		{"unknown member", `{"notes":"x"}`, 422, ""},
		{"long note", `{"note":"` + strings.Repeat("n", 1001) + `"}`, 422, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id, note = "", ""
			got := srv.post(t, "/api/v1/tickets/"+testTicket+"/close", c.body)
			if got.StatusCode != c.status || note != c.note || (id == testTicket) != (c.status == 200) {
				t.Errorf("got %d %s for ticket %q and note %q, want %d and %q", got.StatusCode, got.body, id, note, c.status, c.note)
			}
		})
	}
}

func TestHandleFeedback(t *testing.T) {
	var id string
	var req *contract.FeedbackRequest
	core := &fakeBackend{later: fakeLater{feedback: func(i string, r *contract.FeedbackRequest) (*contract.Feedback, error) {
		id, req = i, r
		return testFeedback(), nil
	}}}
	srv := startServer(t, httpserver.Config{}, core)
	cases := []struct {
		name, body string
		status     int
		want       *contract.FeedbackRequest
		pointer    string
	}{
		{"correct", `{"verdict":"correct"}`, 200, &contract.FeedbackRequest{Verdict: contract.VerdictCorrect}, ""},
		{"misroute", `{"verdict":"misroute","expected_agents":["a"],"comment":"c"}`, 200, &contract.FeedbackRequest{
			Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"a"}, Comment: "c",
		}, ""},
		{"misroute with an intent", `{"verdict":"misroute","expected_agents":["a"],"expected_intent":"i"}`, 200, &contract.FeedbackRequest{
			Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"a"}, ExpectedIntent: "i",
		}, ""},
		{"long intent", `{"verdict":"misroute","expected_agents":["a"],"expected_intent":"` + strings.Repeat("i", 65) + `"}`, 422, nil, "/expected_intent"},
		{"misroute to any agent", `{"verdict":"misroute","expected_none":true}`, 200, &contract.FeedbackRequest{Verdict: contract.VerdictMisroute, ExpectedNone: true}, ""},
		{"not JSON", `correct`, 400, nil, ""},
		{"no body", ``, 400, nil, ""},
		{"no verdict", `{}`, 422, nil, "/verdict"},
		{"another verdict", `{"verdict":"wrong"}`, 422, nil, "/verdict"},
		{"unknown member", `{"verdict":"correct","expected_agent_id":"a"}`, 422, nil, "/expected_agent_id"},
		{"long comment", `{"verdict":"correct","comment":"` + strings.Repeat("c", 1001) + `"}`, 422, nil, "/comment"},
		{"many agents", `{"verdict":"misroute","expected_agents":["a"` + strings.Repeat(`,"a"`, 20) + `]}`, 422, nil, "/expected_agents"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id, req = "", nil
			got := srv.post(t, feedbackPath, c.body)
			if got.StatusCode != c.status || (id == testRequest) != (c.status == 200) {
				t.Errorf("got %d %s for request %q, want %d", got.StatusCode, got.body, id, c.status)
			}
			if diff := cmp.Diff(c.want, req); diff != "" {
				t.Errorf("feedback (-want +got):\n%s", diff)
			}
			if c.pointer != "" && !slices.Equal(pointers(problemOf(t, got)), []string{c.pointer}) {
				t.Errorf("got %s, want an error at %s", got.body, c.pointer)
			}
		})
	}
}

// A full server admits requests that end other requests.
func TestAPI_FullServerAdmitsResultsAndCancels(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	core := &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		close(entered)
		<-release
		return completedResponse(req), nil
	}}
	srv := startServer(t, httpserver.Config{MaxInFlight: 1}, core)
	running := make(chan int, 1)
	go func() { running <- srv.post(t, "/api/v1/route", prompt).StatusCode }()
	testkit.WaitClosed(t, entered)
	agent := []string{"Authorization", "Bearer " + testToken}
	if got := srv.post(t, "/api/v1/tasks/"+testTask+"/result", `{"task_id":"`+testTask+`","status":"success"}`, agent...); got.StatusCode != http.StatusOK {
		t.Errorf("result: got %d, want 200", got.StatusCode)
	}
	if got := srv.post(t, "/api/v1/tasks/"+testTask+"/progress", `{"message":"m"}`, agent...); got.StatusCode != http.StatusNoContent {
		t.Errorf("progress: got %d, want 204", got.StatusCode)
	}
	if got := srv.post(t, "/api/v1/requests/"+testRequest+"/cancel", ""); got.StatusCode != http.StatusOK {
		t.Errorf("cancel: got %d, want 200", got.StatusCode)
	}
	if got := srv.get(t, "/api/v1/requests/"+testRequest); got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("GET of a request: got %d, want 503", got.StatusCode)
	}
	close(release)
	if got := testkit.Receive(t, running); got != http.StatusOK {
		t.Errorf("running request: got %d, want 200", got)
	}
}
