package history_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

var (
	alice   = &contract.Caller{Subject: "alice", Tenant: "north", AllAgents: true}
	bob     = &contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}
	limited = &contract.Caller{Subject: "eve", Tenant: "north", Scopes: []string{"agent:payer"}}
	foreign = &contract.Caller{Subject: "alice", Tenant: "south", AllAgents: true}
)

// fakeTickets returns err when it erases.
type fakeTickets struct{ err error }

func (f *fakeTickets) EraseRequest(context.Context, string) error { return f.err }

// fakeRuns are the orchestrations of all requests.
type fakeRuns struct {
	ended   history.EndedRuns
	err     error // of EndedRuns
	failed  error // of DeleteRun
	deleted []string

	endings     int      // so many times one is about to end
	open        bool     // one has not ended, until CancelRuns
	cancelled   []string // by these subjects
	cancelFails error
}

func (f *fakeRuns) CancelRuns(_ context.Context, _, by string) (bool, error) {
	if f.cancelFails != nil {
		return false, f.cancelFails
	}
	open := f.open
	f.open = false
	if open {
		f.cancelled = append(f.cancelled, by)
	}
	return open, nil
}

func (f *fakeRuns) EndedRuns(context.Context, string) (history.EndedRuns, error) {
	if f.endings > 0 {
		f.endings--
		return history.EndedRuns{}, history.NewEndingError("an orchestration")
	}
	return f.ended, f.err
}

func (f *fakeRuns) DeleteRun(_ context.Context, id string) error {
	if f.failed == nil {
		f.deleted = append(f.deleted, id)
	}
	return f.failed
}

// fakeCanceller returns a response; if it is nil, no call is expected.
type fakeCanceller struct {
	response *contract.Response
	err      error
}

func (f *fakeCanceller) CancelStored(context.Context, string, string) (*contract.Response, error) {
	return f.response, f.err
}

type fixture struct {
	*history.Service
	log       fakeLog
	journal   *history.Journal
	book      *requests.Store
	inflight  *inflight.Table
	tickets   fakeTickets
	runs      fakeRuns
	canceller fakeCanceller
	events    history.EventLog
	live      map[string]bool // processes
	peers     fakePeers
	feedback  history.FeedbackStore
	verdicts  []contract.Verdict // that were counted
}

// fakePeers are the other processes.
type fakePeers struct{ executing map[string]bool }

func (p *fakePeers) IsExecuting(owner string) bool { return p.executing[owner] }

func (*fakePeers) Cancel(string) {}

func newFixture(t *testing.T, options ...func(*fixture)) *fixture {
	t.Helper()
	f := &fixture{book: requests.Disabled(), inflight: inflight.NewTable(), events: history.NoEvents{}}
	logger := slog.New(slog.DiscardHandler)
	f.feedback = feedback.NewStore(store.NoBucket{}, quota.Unlimited(), logger)
	for _, o := range options {
		o(f)
	}
	f.journal = history.NewJournal(&f.log, "", false, logger, time.Now)
	f.Service = history.New(history.Config{
		Log: &f.log, Recording: f.journal, Requests: f.book, InFlight: f.inflight, Events: f.events,
		Sessions: session.NewStore(store.NoBucket{}, quota.Unlimited(), logger), Questions: session.NewQuestions(store.NoBucket{}, quota.Unlimited(), logger),
		Tickets: &f.tickets, Runs: &f.runs, Feedback: f.feedback, Canceller: &f.canceller, Logger: logger, Now: time.Now,
		Peers:      &f.peers,
		OnFeedback: func(v contract.Verdict) { f.verdicts = append(f.verdicts, v) },
		MaskText:   func(s string) string { return strings.ReplaceAll(s, "ana@example.com", "[EMAIL]") },
		IsLive:     func(owner string) bool { return f.live[owner] },
		Catalogue: func() *capabilities.Catalogue {
			return &capabilities.Catalogue{Agents: []*contract.RegistryEntry{agentWith("payer", "pay"), agentWith("second", "archive")}}
		},
	})
	return f
}

// withBook stores asynchronous requests in a real store.
func withBook(t *testing.T) func(*fixture) {
	return func(f *fixture) {
		b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "REQUESTS"})
		if err != nil {
			t.Fatal(err)
		}
		f.book = requests.NewStore(b, quota.Unlimited())
	}
}

func newID(t *testing.T) string {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// idWithAge returns a request id that is older than the test.
func idWithAge(t *testing.T, age time.Duration) string {
	t.Helper()
	id := uuid.MustParse(newID(t))
	ms := uint64(time.Now().Add(-age).UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id.String()
}

// record stores the response of a request of the owner in the audit log.
func (f *fixture) record(t *testing.T, owner *contract.Caller, agents ...string) string {
	t.Helper()
	return f.recordDecision(t, owner, &contract.Decision{Chosen: agents, Hidden: []contract.Candidate{{AgentID: "other"}}})
}

func (f *fixture) recordDecision(t *testing.T, owner *contract.Caller, d *contract.Decision) string {
	t.Helper()
	resp := &contract.Response{
		RequestID: newID(t), Status: contract.StatusCompleted, Data: contract.ResponseData{Answer: "paid"}, Decision: d,
	}
	for _, id := range d.Chosen {
		resp.Tasks = append(resp.Tasks, contract.TaskReport{AgentID: id})
	}
	if err := f.journal.RecordResponse(t.Context(), history.EncodeResponse(history.Subject{Caller: owner, Prompt: "pay"}, resp)); err != nil {
		t.Fatal(err)
	}
	return resp.RequestID
}

func errorCode(err error) contract.Code {
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return e.Code
	}
	if err != nil {
		return "other"
	}
	return ""
}

func TestService_ReturnsVisibleRequests(t *testing.T) {
	f := newFixture(t)
	id := f.record(t, alice, "payer", "second")
	for _, tt := range []struct {
		name   string
		caller *contract.Caller
		want   contract.Code
	}{
		{"owner", alice, ""},
		{"colleague with every agent", bob, ""},
		{"colleague without an agent", limited, contract.CodeNotFound},
		{"another tenant", foreign, contract.CodeNotFound},
	} {
		resp, err := f.Request(t.Context(), id, tt.caller)
		if errorCode(err) != tt.want || err == nil && resp.Data.Answer != "paid" {
			t.Errorf("%s: got %+v, %v, want code %q", tt.name, resp, err, tt.want)
		}
		if tt.caller == bob && resp.Decision.Hidden != nil {
			t.Errorf("%s: got hidden agents %+v, want none", tt.name, resp.Decision.Hidden)
		}
	}
	for _, id := range []string{"", "nonsense", strings.ToUpper(id), uuid.NewString(), newID(t)} {
		if _, err := f.Request(t.Context(), id, alice); errorCode(err) != contract.CodeNotFound {
			t.Errorf("%q: got %v, want not_found", id, err)
		}
	}
	f.log.err = errors.New("broken")
	if _, err := f.Request(t.Context(), id, alice); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("got %v from a broken log, want overloaded", err)
	}
}

// An unknown id costs one search, and a short one if the record of an asynchronous
// request of that age would still be stored. A young id is looked up twice.
func TestService_BoundsSearchForUnknownRequest(t *testing.T) {
	with, without := newFixture(t, withBook(t)), newFixture(t)
	for _, tt := range []struct {
		name            string
		fixture         *fixture
		age             time.Duration
		finds, searches int
	}{
		{"minutes old", with, 10 * time.Minute, 0, 1},
		{"one day old", with, 24 * time.Hour, 0, 1},
		{"older than records are stored", with, 49 * time.Hour, 1, 0},
		{"without asynchronous requests", without, time.Hour, 1, 0},
		{"new", with, 0, 0, 2},
	} {
		tt.fixture.log = fakeLog{}
		if _, err := tt.fixture.Request(t.Context(), idWithAge(t, tt.age), alice); errorCode(err) != contract.CodeNotFound {
			t.Errorf("%s: got %v, want not_found", tt.name, err)
		}
		if l := &tt.fixture.log; l.finds != tt.finds || l.searches != tt.searches {
			t.Errorf("%s: got %d searches of the whole log and %d within a window, want %d and %d", tt.name, l.finds, l.searches, tt.finds, tt.searches)
		}
	}
}

// The request starts after the table of requests in flight was read.
func TestService_FindsRequestThatStartsDuringLookup(t *testing.T) {
	f := newFixture(t)
	id := newID(t)
	f.log.onFind = func() {
		f.log.onFind = nil
		f.inflight.Add(inflight.NewRequest(id, "", alice, func(error) {}))
	}
	if resp, err := f.Request(t.Context(), id, alice); err != nil || resp.Status != contract.StatusRunning {
		t.Errorf("got %+v, %v, want the running request", resp, err)
	}
}

func TestService_CancelsRequestInFlight(t *testing.T) {
	f := newFixture(t)
	var running *inflight.Request
	id := newID(t)
	running = inflight.NewRequest(id, "", alice, func(cause error) {
		if !errors.Is(cause, inflight.ErrCancelled) {
			t.Errorf("got cause %v, want ErrCancelled", cause)
		}
		f.inflight.Remove(running, &contract.Response{RequestID: id, Status: contract.StatusCancelled})
	})
	f.inflight.Add(running)
	if _, err := f.Cancel(t.Context(), id, bob); errorCode(err) != contract.CodeForbidden {
		t.Errorf("a colleague: got %v, want forbidden", err)
	}
	if err := f.Erase(t.Context(), id, alice); errorCode(err) != contract.CodeConflict {
		t.Errorf("erase: got %v, want conflict", err)
	}
	if resp, err := f.Cancel(t.Context(), id, alice); err != nil || resp.Status != contract.StatusCancelled {
		t.Errorf("got %+v, %v, want the request cancelled", resp, err)
	}
}

func TestService_CancelsStoredRequest(t *testing.T) {
	f := newFixture(t, withBook(t))
	rec := &requests.Record{ID: newID(t), Caller: *alice, State: requests.StateAccepted, CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour)}
	rec.Request.RequestID = rec.ID
	if err := f.book.Create(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	f.canceller.response = &contract.Response{RequestID: rec.ID, Status: contract.StatusCancelled}
	if resp, err := f.Cancel(t.Context(), rec.ID, alice); err != nil || resp.Status != contract.StatusCancelled {
		t.Errorf("got %+v, %v, want the request cancelled", resp, err)
	}
	f.canceller.response.Status = contract.StatusPartial
	if resp, err := f.Cancel(t.Context(), rec.ID, alice); err != nil || resp.Status != contract.StatusPartial {
		t.Errorf("after one result: got %+v, %v, want it partial", resp, err)
	}
	f.canceller.response.Status, f.canceller.err = contract.StatusCancelled, requests.ErrEnded
	if resp, err := f.Cancel(t.Context(), rec.ID, alice); err != nil || resp.Status != contract.StatusCancelled {
		t.Errorf("cancelled before: got %+v, %v, want the same", resp, err)
	}
	f.canceller.response.Status = contract.StatusCompleted
	if _, err := f.Cancel(t.Context(), rec.ID, alice); errorCode(err) != contract.CodeConflict {
		t.Errorf("ended: got %v, want conflict", err)
	}
	f.canceller.response, f.canceller.err = nil, store.ErrNotFound
	if _, err := f.Cancel(t.Context(), rec.ID, alice); errorCode(err) != contract.CodeNotFound {
		t.Errorf("erased meanwhile: got %v, want not_found", err)
	}
	if err := f.Erase(t.Context(), rec.ID, alice); errorCode(err) != contract.CodeConflict {
		t.Errorf("erase before the end: got %v, want conflict", err)
	}
	ended := f.record(t, alice)
	if _, err := f.Cancel(t.Context(), ended, alice); errorCode(err) != contract.CodeConflict {
		t.Errorf("ended synchronous request: got %v, want conflict", err)
	}
}

// The orchestrations of a request are erased with it, if all have ended. If one cannot be
// erased, the request can be erased again.
func TestService_ErasesRuns(t *testing.T) {
	f := newFixture(t)
	id := f.record(t, alice)
	f.runs.err = &contract.Error{Code: contract.CodeConflict, Message: "one has not ended"}
	if err := f.Erase(t.Context(), id, alice); errorCode(err) != contract.CodeConflict {
		t.Errorf("got %v, want conflict", err)
	}
	if resp, err := f.Request(t.Context(), id, alice); err != nil || resp.Data.Answer != "paid" {
		t.Errorf("got %+v, %v, want nothing erased after a conflict", resp, err)
	}
	f.runs.err = nil
	f.runs.ended = history.EndedRuns{IDs: []string{"run1", "run2"}, At: history.TimeOfID(id).Add(72 * time.Hour)}
	f.runs.failed = store.ErrUnavailable
	if err := f.Erase(t.Context(), id, alice); errorCode(err) != contract.CodeOverloaded || !strings.Contains(err.Error(), "orchestrations") {
		t.Errorf("got %v, want overloaded because of the orchestrations", err)
	}
	f.runs.failed = nil
	if err := f.Erase(t.Context(), id, alice); err != nil {
		t.Errorf("got %v, want the rest erased", err)
	}
	if !slices.Equal(f.runs.deleted, f.runs.ended.IDs) || f.log.erasedWithin != 72*time.Hour {
		t.Errorf("got %q deleted, and contents of %s erased, want both runs and 72h", f.runs.deleted, f.log.erasedWithin)
	}
}

func TestService_ErasesContent(t *testing.T) {
	f := newFixture(t)
	issued := &contract.Caller{Subject: "alice", Tenant: "north", Issuer: "https://id.example", AllAgents: true}
	mine, theirs := f.record(t, alice), f.record(t, issued)
	if err := f.Erase(t.Context(), mine, bob); errorCode(err) != contract.CodeForbidden {
		t.Errorf("a colleague: got %v, want forbidden", err)
	}
	f.tickets.err = errors.New("broken")
	if err := f.Erase(t.Context(), mine, alice); errorCode(err) != contract.CodeOverloaded || !strings.Contains(err.Error(), "tickets") {
		t.Errorf("got %v, want overloaded because of the tickets", err)
	}
	f.tickets.err = nil
	for id, caller := range map[string]*contract.Caller{mine: alice, theirs: issued} {
		if err := f.Erase(t.Context(), id, caller); err != nil {
			t.Fatal(err)
		}
		resp, err := f.Request(t.Context(), id, caller)
		if err != nil || resp.Status != contract.StatusCompleted || resp.Data.Answer != "" || resp.Decision != nil {
			t.Errorf("got %+v, %v, want the status only", resp, err)
		}
	}
	slices.Sort(f.log.erasedBy)
	if diff := cmp.Diff([]string{"alice", "alice", "alice (https://id.example)"}, f.log.erasedBy); diff != "" {
		t.Errorf("erased by (-want +got):\n%s", diff)
	}
}

func TestService_FiltersDecisions(t *testing.T) {
	f := newFixture(t)
	first, second := f.record(t, alice, "payer"), f.record(t, alice, "payer", "second")
	for _, tt := range []struct {
		name   string
		query  contract.DecisionQuery
		caller *contract.Caller
		want   []string
	}{
		{"owner", contract.DecisionQuery{}, alice, []string{first, second}},
		{"colleague with one agent", contract.DecisionQuery{}, limited, []string{first}},
		{"another tenant", contract.DecisionQuery{}, foreign, nil},
		{"by agent", contract.DecisionQuery{Agent: "second"}, alice, []string{second}},
		{"by hidden agent", contract.DecisionQuery{Agent: "second"}, limited, nil},
		{"by outcome", contract.DecisionQuery{Outcome: contract.StatusFailed}, alice, nil},
	} {
		page, err := f.Decisions(t.Context(), tt.query, tt.caller)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range page.Decisions {
			ids = append(ids, page.Decisions[i].RequestID)
		}
		if diff := cmp.Diff(tt.want, ids); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	policy := "B"
	unsure := f.recordDecision(t, alice, &contract.Decision{FallbackUsed: &policy, Classification: contract.Classification{
		Intent: "pay", Confidence: 0.4, Source: contract.SourceLexical,
	}})
	sure := f.recordDecision(t, alice, &contract.Decision{Chosen: []string{"payer"}, Classification: contract.Classification{
		Intent: "pay", Confidence: 0.7, Source: contract.SourceLLM,
	}})
	f.log.records = append(f.log.records, audit.Record{Kind: audit.KindOutcome, RequestID: newID(t), Subject: alice.Subject, Tenant: alice.Tenant}) // erased
	for _, tt := range []struct {
		name  string
		query contract.DecisionQuery
		want  []string
	}{
		{"by intent", contract.DecisionQuery{Intent: "pay"}, []string{unsure, sure}},
		{"below", contract.DecisionQuery{Intent: "pay", Below: 0.7}, []string{unsure}},
		{"by source", contract.DecisionQuery{Source: contract.SourceLLM}, []string{sure}},
		{"by any fallback", contract.DecisionQuery{Fallback: contract.AnyFallback}, []string{unsure}},
		{"by policy", contract.DecisionQuery{Fallback: "B"}, []string{unsure}},
		{"by another policy", contract.DecisionQuery{Fallback: "C"}, nil},
		{"by request", contract.DecisionQuery{RequestID: sure}, []string{sure}},
		{"by unknown request", contract.DecisionQuery{RequestID: newID(t)}, nil},
	} {
		page, err := f.Decisions(t.Context(), tt.query, alice)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range page.Decisions {
			ids = append(ids, page.Decisions[i].RequestID)
		}
		if diff := cmp.Diff(tt.want, ids); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	f.log.err = errors.New("broken")
	if _, err := f.Decisions(t.Context(), contract.DecisionQuery{}, alice); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("got %v from a broken log, want overloaded", err)
	}
}

// goneEvents loses its events once, then returns the final event, which is too long to
// contain the response.
type goneEvents struct {
	history.NoEvents
	followed uint64
}

func (e *goneEvents) Read(context.Context, string, uint64, func(uint64, *contract.Event) error) error {
	return events.ErrGone
}

func (e *goneEvents) Position(context.Context) (uint64, error) { return 7, nil }

func (e *goneEvents) Follow(_ context.Context, id string, after uint64, fn func(uint64, *contract.Event) error) error {
	e.followed = after
	return fn(after+1, &contract.Event{Type: contract.EventFinal, RequestID: id})
}

func TestService_EmitsStateInsteadOfLostEvents(t *testing.T) {
	stream := &goneEvents{}
	f := newFixture(t, withBook(t), func(f *fixture) { f.events = stream })
	rec := &requests.Record{ID: newID(t), Caller: *alice, State: requests.StateAccepted, CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour)}
	rec.Request.RequestID = rec.ID
	if err := f.book.Create(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	ended := f.record(t, alice)
	type emitted struct {
		Seq         uint64
		Type        contract.EventType
		HasResponse bool
	}
	for _, tt := range []struct {
		name, id string
		want     []emitted
	}{
		{"asynchronous", rec.ID, []emitted{{0, contract.EventState, true}, {8, contract.EventFinal, true}}},
		{"synchronous", ended, []emitted{{0, contract.EventState, true}, {0, contract.EventFinal, true}}},
	} {
		var got []emitted
		err := f.Events(t.Context(), tt.id, alice, 0, func(seq uint64, ev *contract.Event) error {
			got = append(got, emitted{seq, ev.Type, ev.Response != nil})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if stream.followed != 7 {
		t.Errorf("got events followed after %d, want 7", stream.followed)
	}
	if err := f.Events(t.Context(), ended, foreign, 0, nil); errorCode(err) != contract.CodeNotFound {
		t.Errorf("another tenant: got %v, want not_found", err)
	}
}
