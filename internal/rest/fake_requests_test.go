package rest

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// fakeLater contains the behaviour of a fakeBackend for asynchronous and stored requests, reports
// of agents, and tickets. A nil function succeeds.
type fakeLater struct {
	stream   func(ctx context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error)
	submit   func(req *contract.Request) (*contract.Response, error)
	stored   func(id string) (*contract.Response, error) // Request and Cancel
	erase    func(id string) error
	events   func(ctx context.Context, after uint64, emit func(uint64, *contract.Event) error) error
	result   func(grant contract.TaskGrant, res *contract.Result) error
	progress func(grant contract.TaskGrant, p *contract.Progress) error

	feedback  func(id string, req *contract.FeedbackRequest) (*contract.Feedback, error)
	decisions func(contract.DecisionQuery) (*contract.DecisionPage, error)
	audit     func(contract.AuditQuery) (*contract.AuditPage, error)
	tickets   func(contract.TicketQuery) (*contract.TicketPage, error)
	ticket    func(id, note string) (*contract.Ticket, error) // note is "" unless the ticket is closed
}

const (
	testRequest  = "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90"
	testTask     = "01980c1a-7c0b-7d10-a1b2-c3d4e5f60718"
	testTicket   = "01980b90-1f00-7c55-8a10-0242ac120002"
	feedbackPath = "/api/v1/requests/" + testRequest + "/feedback"
	eventsPath   = "/api/v1/requests/" + testRequest + "/events"
	testToken    = "good-token"
	testYAML     = "clients: {}\n"
)

var testTime = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func (f *fakeBackend) taskToken(token string) (contract.TaskGrant, error) {
	if token != testToken {
		return contract.TaskGrant{}, errors.New("secret reason")
	}
	return contract.TaskGrant{AgentID: "quality_agent", RequestID: testRequest, TaskID: testTask, Lease: f.lease}, nil
}

func (f *fakeBackend) Stream(ctx context.Context, req *contract.Request, caller *contract.Caller, emit func(*contract.Event)) (*contract.Response, error) {
	f.note(req)
	if f.later.stream != nil {
		return f.later.stream(ctx, req, emit)
	}
	if f.handle != nil {
		return f.handle(ctx, req, caller)
	}
	resp := completedResponse(req)
	for _, ev := range eventsOf(resp) {
		emit(ev)
	}
	return resp, nil
}

// eventsOf returns the events of a response, without the event "final".
func eventsOf(resp *contract.Response) []*contract.Event {
	percent := 50.0
	running := resp.Tasks[0]
	running.Status = contract.TaskRunning
	events := []*contract.Event{
		{Type: contract.EventDecision, Decision: resp.Decision},
		{Type: contract.EventTaskStarted, Task: &running},
		{Type: contract.EventTaskProgress, Task: &running, Progress: &contract.Progress{Message: "line 1\nline 2", Percent: &percent}},
		{Type: contract.EventTaskDone, Task: &resp.Tasks[0]},
	}
	for _, ev := range events {
		ev.RequestID, ev.At = resp.RequestID, testTime
	}
	return events
}

func finalEvent(resp *contract.Response) *contract.Event {
	return &contract.Event{Type: contract.EventFinal, RequestID: resp.RequestID, At: testTime, Response: resp}
}

func (f *fakeBackend) Submit(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
	f.note(req)
	if f.later.submit != nil {
		return f.later.submit(req)
	}
	return acceptedResponse(req.RequestID), nil
}

func acceptedResponse(id string) *contract.Response {
	return &contract.Response{RequestID: id, TraceID: goodTrace, Status: contract.StatusAccepted}
}

func storedResponse(id string) *contract.Response {
	return completedResponse(&contract.Request{RequestID: id})
}

func proposedResponse(req *contract.Request) *contract.Response {
	r := unsupportedResponse(req)
	policy := "C"
	r.Status, r.Decision.FallbackUsed = contract.StatusProposed, &policy
	r.Data = contract.ResponseData{Mode: contract.DataAgentProposal, DryRun: req.Options.DryRun, Proposal: &contract.Proposal{
		TicketID: testTicket, Count: 1, Threshold: 0.5, Detail: "d", SuggestedYAML: testYAML,
	}}
	return r
}

func (f *fakeBackend) Request(_ context.Context, id string, _ *contract.Caller) (*contract.Response, error) {
	if f.later.stored != nil {
		return f.later.stored(id)
	}
	return storedResponse(id), nil
}

func (f *fakeBackend) Cancel(_ context.Context, id string, _ *contract.Caller) (*contract.Response, error) {
	if f.later.stored != nil {
		return f.later.stored(id)
	}
	r := storedResponse(id)
	r.Status, r.Tasks[0].Status = contract.StatusCancelled, contract.TaskCancelled
	r.Data = contract.ResponseData{Mode: contract.DataDispatch}
	return r, nil
}

func (f *fakeBackend) Erase(_ context.Context, id string, _ *contract.Caller) error {
	if f.later.erase != nil {
		return f.later.erase(id)
	}
	return nil
}

func (f *fakeBackend) Events(ctx context.Context, id string, _ *contract.Caller, after uint64, emit func(uint64, *contract.Event) error) error {
	if f.later.events != nil {
		return f.later.events(ctx, after, emit)
	}
	resp := storedResponse(id)
	for i, ev := range append(eventsOf(resp), finalEvent(resp)) {
		if seq := uint64(i + 1); seq > after {
			if err := emit(seq, ev); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fakeBackend) AcceptResult(_ context.Context, grant contract.TaskGrant, res *contract.Result) error {
	if f.later.result != nil {
		return f.later.result(grant, res)
	}
	return nil
}

func (f *fakeBackend) AcceptProgress(_ context.Context, grant contract.TaskGrant, p *contract.Progress) error {
	if f.later.progress != nil {
		return f.later.progress(grant, p)
	}
	return nil
}

func (f *fakeBackend) AddFeedback(_ context.Context, id string, req *contract.FeedbackRequest, _ *contract.Caller) (*contract.Feedback, error) {
	if f.later.feedback != nil {
		return f.later.feedback(id, req)
	}
	return testFeedback(), nil
}

func testFeedback() *contract.Feedback {
	return &contract.Feedback{Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"quality_agent"}, Comment: "c", Tenant: "t", Subject: "s", At: testTime}
}

func (f *fakeBackend) Decisions(_ context.Context, query contract.DecisionQuery, _ *contract.Caller) (*contract.DecisionPage, error) {
	if f.later.decisions != nil {
		return f.later.decisions(query)
	}
	r := storedResponse(testRequest)
	return &contract.DecisionPage{NextCursor: "next", Decisions: []contract.DecisionEntry{
		{At: testTime, RequestID: r.RequestID, TraceID: r.TraceID, Subject: "s", Status: r.Status, Decision: r.Decision, Tasks: r.Tasks, Feedback: []contract.Feedback{*testFeedback()}},
		{At: testTime, RequestID: testTask, TraceID: r.TraceID, Subject: "s", Status: r.Status, Erased: true},
	}}, nil
}

func (f *fakeBackend) AuditEntries(_ context.Context, query contract.AuditQuery, _ *contract.Caller) (*contract.AuditPage, error) {
	if f.later.audit != nil {
		return f.later.audit(query)
	}
	return &contract.AuditPage{NextCursor: "next", Entries: []contract.AuditEntry{
		{ID: "main-4", Time: testTime, Kind: contract.AuditAdmin, Event: "disable", Actor: "s", Issuer: "i", Agents: []string{"quality_agent"}, Instance: "one"},
		{ID: "main-3", Time: testTime, Kind: contract.AuditFeedback, RequestID: testRequest, Tenant: "t", Actor: "s", Verdict: contract.VerdictMisroute},
		{ID: "main-2", Time: testTime, Kind: contract.AuditRun, Event: "policy_allow", RequestID: testRequest, OrchestrationID: testTask, Actor: "s", Tool: "files.read", Rule: "r"},
		{ID: "main-1", Time: testTime, Kind: contract.AuditOutcome, RequestID: testRequest, Actor: "s", Status: contract.StatusCompleted, FallbackUsed: "B", Detail: "d", Erased: true},
	}}, nil
}

func (f *fakeBackend) Tickets(_ context.Context, query contract.TicketQuery, _ *contract.Caller) (*contract.TicketPage, error) {
	if f.later.tickets != nil {
		return f.later.tickets(query)
	}
	return &contract.TicketPage{Tickets: []contract.Ticket{*testTicketOf("")}}, nil
}

func (f *fakeBackend) Ticket(_ context.Context, id string, _ *contract.Caller) (*contract.Ticket, error) {
	if f.later.ticket != nil {
		return f.later.ticket(id, "")
	}
	return testTicketOf(""), nil
}

func (f *fakeBackend) CloseTicket(_ context.Context, id, note string, _ *contract.Caller) (*contract.Ticket, error) {
	if f.later.ticket != nil {
		return f.later.ticket(id, note)
	}
	return testTicketOf(note), nil
}

// testTicketOf returns a ticket, which is closed if there is a note.
func testTicketOf(note string) *contract.Ticket {
	t := &contract.Ticket{
		TicketID: testTicket, Status: contract.TicketOpen, Title: "t", CreatedAt: testTime, LastAt: testTime, Count: 1, Callers: 1,
		PerDay:   []contract.DayCount{{Day: "2026-01-02", Count: 1}},
		Reasons:  map[string]int{"no_match": 1},
		Examples: []contract.TicketExample{{RequestID: testRequest, At: testTime, Prompt: "p", Similarity: 1}},
		Nearest:  []contract.NearestMiss{{AgentID: "quality_agent", Score: 0.3, MissingScore: 0.35}},

		SuggestedYAML: testYAML,
	}
	if note != "" {
		closed := testTime
		t.Status, t.ClosedAt, t.Note = contract.TicketClosed, &closed, note
	}
	return t
}

const (
	goodTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	goodParent = "00f067aa0ba902b7"
)
