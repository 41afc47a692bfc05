package history_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
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
	requests  *requests.Store
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
	f := &fixture{requests: requests.Disabled(), inflight: inflight.NewTable(), events: history.NoEvents{}}
	logger := slog.New(slog.DiscardHandler)
	f.feedback = feedback.NewStore(store.NoBucket{}, quota.Unlimited(), logger)
	for _, o := range options {
		o(f)
	}
	f.journal = history.NewJournal(&f.log, "", false, logger, time.Now)
	f.Service = history.New(history.Config{
		Log: &f.log, Recording: f.journal, Requests: f.requests, InFlight: f.inflight, Events: f.events,
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

// withStore stores asynchronous requests in a real store.
func withStore(t *testing.T) func(*fixture) {
	return func(f *fixture) {
		b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "REQUESTS"})
		if err != nil {
			t.Fatal(err)
		}
		f.requests = requests.NewStore(b, quota.Unlimited())
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
