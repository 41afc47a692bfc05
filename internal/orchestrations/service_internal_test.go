package orchestrations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// runJournal records the ends of runs. The first attempts fail.
type runJournal struct {
	mu    sync.Mutex
	fails int
	ends  []string
	// counted are the statuses of the runs that were counted.
	counted []contract.OrchestrationStatus
}

func (j *runJournal) RecordRunEvent(_ context.Context, ev *history.RunEvent, _ *redact.Masking) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fails > 0 {
		j.fails--
		return errors.New("the disk is full")
	}
	j.ends = append(j.ends, ev.RunID+" "+ev.Event.Event)
	return nil
}

// runMeter counts the ends of runs in a journal.
type runMeter struct{ *runJournal }

func (m runMeter) RecordOrchestration(status contract.OrchestrationStatus, _ time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counted = append(m.counted, status)
}

func (j *runJournal) recorded() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.ends)
}

func (j *runJournal) countedStatuses() []contract.OrchestrationStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.counted)
}

// noServers is a gateway without servers, so that a run ends without a call.
type noServers struct{}

func (noServers) Servers() []gateway.ServerInfo         { return nil }
func (noServers) Get(string) (gateway.ServerInfo, bool) { return gateway.ServerInfo{}, false }
func (noServers) WaitServer(context.Context, string) (gateway.ServerInfo, bool) {
	return gateway.ServerInfo{}, false
}

// faultyServers is a gateway that panics.
type faultyServers struct{ noServers }

func (faultyServers) Servers() []gateway.ServerInfo { panic("a mistake in the program") }

type noModels struct{}

func (noModels) Planner(c *contract.GoalConstraints) (orchestrator.Planner, error) {
	return orchestrator.Static{Raw: c.Plan}, nil
}

func (noModels) Verifier(*contract.GoalConstraints) (orchestrator.Verifier, error) {
	return orchestrator.Deterministic{}, nil
}

// slowServers is a gateway without servers, whose list is available when ready is closed.
type slowServers struct {
	noServers
	listing chan struct{} // receives when the list is requested
	ready   chan struct{}
}

func newSlowServers() slowServers {
	return slowServers{listing: make(chan struct{}, 1), ready: make(chan struct{})}
}

func (s slowServers) Servers() []gateway.ServerInfo {
	s.listing <- struct{}{}
	<-s.ready
	return nil
}

const testOwner = "process-1"

// serviceConfig describes the Service of a test.
type serviceConfig struct {
	servers MCPServers
	fails   int                        // attempts to record an end that fail
	onWrite func(key string, size int) // of the bucket
	live    bool                       // each other process is live
	log     testkit.LogBuffer
}

// openService returns a Service that searches for runs without a process, and its journal.
func openService(t *testing.T, cfg *serviceConfig) (*Service, *runJournal) {
	t.Helper()
	st := teststore.Open(t)
	bucket, err := st.Bucket(t.Context(), store.BucketConfig{Name: "ORCHESTRATIONS", Keys: teststore.Keys(), OnWrite: cfg.onWrite})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := st.Bucket(t.Context(), store.BucketConfig{Name: "IDEMPOTENCY"})
	if err != nil {
		t.Fatal(err)
	}
	redactor, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Default()
	if err != nil {
		t.Fatal(err)
	}
	journal := &runJournal{fails: cfg.fails}
	s, err := New(t.Context(), Config{
		Bucket: bucket, Quota: quota.New(quota.Config{}), Owner: testOwner, IsLive: func(o string) bool { return cfg.live || o == testOwner }, Messages: st,
		IdempotencyKeys: keys, IdempotencyQuota: quota.Unlimited(),
		Servers: cfg.servers, Journal: journal, Contents: &fakeContents{}, Redactor: redactor, Enforcer: rules, Models: noModels{}, Budgets: orchestrator.Budgets{Steps: 10}, Timeout: time.Minute,
		Meter: runMeter{journal}, Logger: cfg.log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	g := run.New(t.Context())
	g.Go("service", s.Run)
	t.Cleanup(func() {
		g.Stop(nil)
		_ = g.Wait()
		s.Close(t.Context())
	})
	return s, journal
}

// newRunID returns the id of a run that starts now: the sweep removes an older one from the
// index if it reads the index before the record is written.
func newRunID() string {
	ms := time.Now().UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-000000000001", ms>>16, ms&0xffff)
}

// waitConcluded waits until the end of the run is recorded, once and with the event, and it is
// not open.
func waitConcluded(t *testing.T, s *Service, journal *runJournal, id, event string) {
	t.Helper()
	testkit.Eventually(t, "the end of the run is recorded", func() bool {
		open, err := s.store.isOpen(t.Context(), id)
		return err == nil && !open && len(journal.recorded()) > 0 && len(journal.countedStatuses()) > 0
	})
	s.sweep(t.Context())
	if got := journal.countedStatuses(); len(got) != 1 || !got[0].Terminal() {
		t.Errorf("got the statuses %q counted, want one", got)
	}
	// A sweep that began before the end of the run may store its counts last.
	testkit.Eventually(t, "no run is open", func() bool { return len(s.CountOpen()) == 0 })
	if got := journal.recorded(); len(got) != 1 || got[0] != id+" "+event {
		t.Errorf("got the ends %q, want one %s", got, event)
	}
}

func newSubmission() Submission {
	goal := &contract.Goal{Goal: "a goal", Constraints: contract.GoalConstraints{Plan: json.RawMessage(
		`{"steps":[{"id":"a","action":"x.y","success_criteria":[{"contains":"z"}]}]}`)}}
	return Submission{Goal: goal, Caller: &contract.Caller{Subject: "ana"}, ID: newRunID()}
}

func submitGoal(t *testing.T, s *Service) (id string) {
	t.Helper()
	sub := newSubmission()
	if _, err := s.Submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	return sub.ID
}

// A panic ends the run in which it happens. The next run is executed.
func TestService_EndsRunThatPanics(t *testing.T) {
	s, journal := openService(t, &serviceConfig{servers: faultyServers{}})
	waitConcluded(t, s, journal, submitGoal(t, s), "aborted")
	testkit.Eventually(t, "the run is not executed any more", func() bool {
		s.running.mu.Lock()
		defer s.running.mu.Unlock()
		return len(s.running.byID) == 0
	})
}

// The end of a run that cannot be recorded at first is recorded later, by the same process.
func TestService_ConcludesLater(t *testing.T) {
	s, journal := openService(t, &serviceConfig{servers: noServers{}, fails: 1})
	waitConcluded(t, s, journal, submitGoal(t, s), "no_servers")
}

// A run that the store accepted too late for its process to start it is executed.
func TestService_ContinuesOwnRun(t *testing.T) {
	s, journal := openService(t, &serviceConfig{servers: noServers{}})
	sub := newSubmission()
	if err := s.store.create(t.Context(), newStoredRecord(sub)); err != nil {
		t.Fatal(err)
	}
	waitConcluded(t, s, journal, sub.ID, "no_servers")
}

// newStoredRecord returns the record of a submission that has not begun.
func newStoredRecord(sub Submission) *orchestrator.Record {
	now := time.Now()
	return &orchestrator.Record{
		ID: sub.ID, State: orchestrator.StateInit, Owner: testOwner, CreatedAt: now, Deadline: now.Add(time.Minute), Caller: *sub.Caller, Goal: *sub.Goal,
		Planner: contract.RunModel{Kind: contract.PlannerStatic}, Verifier: contract.RunModel{Kind: contract.VerifierDeterministic},
	}
}

// A goal that nests as deep as a body may is stored in a record that nests deeper.
func TestService_EndsRunWithDeepGoal(t *testing.T) {
	const levels = strictjson.MaxDepth - 2 // the body is an object, and so is its member
	env := json.RawMessage(`{"deep":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`)
	s, journal := openService(t, &serviceConfig{servers: noServers{}})
	sub := newSubmission()
	sub.Goal.EnvContext = env
	if _, err := s.Submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	id := sub.ID
	waitConcluded(t, s, journal, id, "no_servers")
	if _, err := s.Get(t.Context(), id, &contract.Caller{Subject: "ana"}); err != nil {
		t.Errorf("got error %v, want the run", err)
	}
}

// A task whose run cannot be read for a moment is not reported as one that was not sent, because
// another agent would get it while the run goes on.
func TestService_CompleteRepeatsFailedRead(t *testing.T) {
	servers := newSlowServers()
	cfg := &serviceConfig{servers: servers}
	s, _ := openService(t, cfg)
	sub := newSubmission()
	type completion struct {
		run *contract.Orchestration
		err error
	}
	completed := make(chan completion, 1)
	run.New(t.Context()).Go("complete", func(ctx context.Context) error {
		got, err := s.Complete(ctx, sub, func(*contract.ApprovalGate) {})
		completed <- completion{got, err}
		return nil
	})
	testkit.Receive(t, servers.listing)
	bucket, key := s.cfg.Bucket, recordPrefix+sub.ID
	stored, err := bucket.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := bucket.Update(t.Context(), key, []byte("{}"), stored.Revision)
	if err != nil {
		t.Fatal(err)
	}
	s.store.followers.notify(sub.ID)
	testkit.Eventually(t, "a read has failed", func() bool { return strings.Contains(cfg.log.String(), "the orchestration cannot be read") })
	if _, err := bucket.Update(t.Context(), key, stored.Value, revision); err != nil {
		t.Fatal(err)
	}
	close(servers.ready)
	if got := testkit.Receive(t, completed); got.err != nil || got.run.Reason != contract.ReasonNoServers {
		t.Errorf("got run %+v and error %v, want the end of the run", got.run, got.err)
	}
}

// A run that the store has accepted without a confirmation is cancelled, because its caller got
// an error. The sweep does not execute it.
func TestService_WithdrawsUnconfirmedRun(t *testing.T) {
	sub := newSubmission()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var bucket *store.Bucket
	servers := newSlowServers()
	close(servers.ready)
	cfg := &serviceConfig{servers: servers}
	var created bool
	cfg.onWrite = func(key string, _ int) {
		if created || key != "open."+sub.ID {
			return
		}
		created = true
		// The record is stored, and the attempt of the caller to store it gets no answer.
		data, err := encodeRecord(sub.ID, newStoredRecord(sub))
		if err == nil {
			_, err = bucket.Create(t.Context(), recordPrefix+sub.ID, data)
		}
		if err != nil {
			t.Error(err)
		}
		cancel()
	}
	s, journal := openService(t, cfg)
	bucket = s.cfg.Bucket
	if _, err := s.Submit(ctx, sub); err == nil {
		t.Fatal("got the run accepted, want an error")
	}
	waitConcluded(t, s, journal, sub.ID, "cancelled")
	if n := len(servers.listing); n > 0 {
		t.Error("got the run executed, want it cancelled")
	}
	testkit.Eventually(t, "the run is released", func() bool { return !s.running.has(sub.ID) })
}

// TestService_RejectsPatternsWithoutActions: a name without a server would deny nothing.
func TestService_RejectsPatternsWithoutActions(t *testing.T) {
	s := &Service{cfg: Config{Timeout: time.Hour}}
	for name, tc := range map[string]struct {
		constraints contract.GoalConstraints
		want        []string
	}{
		"patterns of actions": {contract.GoalConstraints{Allow: []string{"*"}, Deny: []string{"files.write", "files.*", "*.write", "fil*"}}, nil},
		"tool only":           {contract.GoalConstraints{Deny: []string{"files.*", "write"}}, []string{"/constraints/deny/1"}},
		"server only":         {contract.GoalConstraints{Allow: []string{"files"}, Deny: []string{""}}, []string{"/constraints/allow/0", "/constraints/deny/0"}},
	} {
		err := s.checkGoal(&contract.Goal{Goal: "x", Constraints: tc.constraints})
		var got []string
		if e, ok := errors.AsType[*contract.Error](err); ok {
			for _, d := range e.Details {
				got = append(got, d.Pointer)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v with mistakes at %q, want %q", name, err, got, tc.want)
		}
	}
}

// A goal that must be resumed is not pursued if its run is not stored, and the error is none of a
// goal that was not submitted: another agent must not get its task.
func TestService_CompleteBeginsNoRunThatMustBeResumed(t *testing.T) {
	s, journal := openService(t, &serviceConfig{servers: noServers{}})
	sub := newSubmission()
	sub.MustResume = true
	run, err := s.Complete(t.Context(), sub, func(*contract.ApprovalGate) {})
	if _, ok := errors.AsType[*contract.Error](err); run != nil || err == nil || ok {
		t.Errorf("got run %+v and error %v, want one that is no *contract.Error", run, err)
	}
	if _, err := s.store.get(t.Context(), sub.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got error %v, want no run", err)
	}
	id := submitGoal(t, s)
	waitConcluded(t, s, journal, id, "no_servers")
	sub.ID = id
	if run, err := s.Complete(t.Context(), sub, func(*contract.ApprovalGate) {}); err != nil || run.Status != contract.OrchestrationDegraded {
		t.Errorf("got run %+v and error %v, want the one that has ended", run, err)
	}
}
