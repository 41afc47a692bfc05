package orchestrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/orchestrator"
)

// fakeContents are the contents of an audit log. The first attempts to erase fail.
type fakeContents struct {
	mu     sync.Mutex
	fails  int
	erased []string // id and caller
	life   time.Duration
}

func (c *fakeContents) Erase(_ context.Context, id string, by *contract.Caller, life time.Duration) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails > 0 {
		c.fails--
		return 0, store.ErrUnavailable
	}
	c.erased, c.life = append(c.erased, id+" "+by.Subject), life
	return 1, nil
}

// addRun stores the record of a run, and returns its id.
func addRun(t *testing.T, s *Service, n int, change func(r *orchestrator.Record)) string {
	t.Helper()
	sub := newSubmission()
	sub.ID = fmt.Sprintf("%s%02d", sub.ID[:len(sub.ID)-2], n)
	rec := newStoredRecord(sub)
	rec.Caller.Tenant = "acme"
	rec.State, rec.EndedAt = orchestrator.StateDone, rec.CreatedAt.Add(time.Hour)
	change(rec)
	if err := s.store.create(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if rec.State.Terminal() {
		if err := s.store.close(t.Context(), sub.ID); err != nil {
			t.Fatal(err)
		}
	}
	return sub.ID
}

func unchanged(*orchestrator.Record) {}

// park makes a run wait for a person, so that no sweep continues it.
func park(r *orchestrator.Record) {
	r.Owner, r.ParkedAt = "", time.Now()
	r.Plan = &contract.Plan{Steps: []contract.PlanStep{{ID: "a", Action: "x.y"}}}
	r.Steps = []orchestrator.Step{{State: orchestrator.StepGated, Gate: 1}}
	r.Gates = []contract.ApprovalGate{{StepID: "a", Action: "x.y", ExpiresAt: r.ParkedAt.Add(time.Hour)}}
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

// A run is erased by its caller or an administrator, when it has ended.
func TestService_Erase(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}, live: true})
	contents := s.cfg.Contents.(*fakeContents)
	caller := func(subject, tenant string, scopes ...string) *contract.Caller {
		return &contract.Caller{Subject: subject, Tenant: tenant, Scopes: scopes}
	}
	inProgress := func(r *orchestrator.Record) {
		r.State, r.EndedAt, r.Owner = orchestrator.StateExecute, time.Time{}, "another"
	}
	for i, tt := range []struct {
		name   string
		caller *contract.Caller
		change func(r *orchestrator.Record)
		want   contract.Code
		text   string // in the error
	}{
		{"its caller", caller("ana", "acme"), unchanged, "", ""},
		{"an administrator", caller("root", "", contract.ScopeAdmin), unchanged, "", ""},
		{"an approver", caller("bob", "acme", contract.ScopeApprove), unchanged, contract.CodeForbidden, "administrator"},
		{"a colleague", caller("bob", "acme"), unchanged, contract.CodeNotFound, ""},
		{"another tenant", caller("ana", "rival"), unchanged, contract.CodeNotFound, ""},
		{"in progress", caller("ana", "acme"), inProgress, contract.CodeConflict, "cancel it first"},
		{"waiting", caller("ana", "acme"), func(r *orchestrator.Record) { inProgress(r); park(r) }, contract.CodeConflict, "cancel it first"},
		{"a task", caller("ana", "acme"), func(r *orchestrator.Record) { r.RequestID = "r1" }, contract.CodeConflict, "erase that request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := addRun(t, s, i, tt.change)
			before := len(contents.erased)
			err := s.Eraser().Erase(t.Context(), id, tt.caller)
			if errorCode(err) != tt.want || err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got error %v, want %q with %q", err, tt.want, tt.text)
			}
			_, stored := s.store.get(t.Context(), id)
			if gone := errors.Is(stored, store.ErrNotFound); gone != (tt.want == "") || (len(contents.erased) > before) != gone {
				t.Errorf("got the record gone %t, and contents %q erased", gone, contents.erased[before:])
			}
		})
	}
	if want := time.Hour; contents.life < want || contents.life > want+time.Minute {
		t.Errorf("got a life of %s, want %s", contents.life, want)
	}
}

// An erasure of which a part fails, or that is interrupted after any part, can be repeated.
func TestService_RepeatsErasure(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}, live: true})
	contents, ana := s.cfg.Contents.(*fakeContents), &contract.Caller{Subject: "ana", Tenant: "acme"}
	id := addRun(t, s, 1, unchanged)
	contents.fails = 1
	if err := s.Eraser().Erase(t.Context(), id, ana); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("got error %v, want overloaded", err)
	}
	// The process ended between the contents and the record.
	if _, err := contents.Erase(t.Context(), id, &contract.Caller{Subject: "ana"}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Eraser().Erase(t.Context(), id, ana); err != nil {
		t.Errorf("got error %v, want the rest erased", err)
	}
	if _, err := s.store.get(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got error %v, want no record", err)
	}
}

// The end of a run must be recorded before it can be erased, because the record would be written
// afterwards.
func TestService_ErasesAfterConclusion(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}, live: true})
	ana := &contract.Caller{Subject: "ana", Tenant: "acme"}
	id := addRun(t, s, 1, func(r *orchestrator.Record) { r.Owner = "another" })
	if _, err := s.store.open.Create(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	rec, err := s.store.get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Eraser().checkEnded(t.Context(), rec); errorCode(err) != contract.CodeConflict || !strings.Contains(err.Error(), "is ending") {
		t.Errorf("got error %v, want a conflict, because the run is ending", err)
	}
	erased := make(chan error, 1)
	go func() { erased <- s.Eraser().Erase(t.Context(), id, ana) }()
	if err := s.store.close(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, erased); err != nil {
		t.Errorf("got error %v, want the erasure to wait for the end", err)
	}
}

// The runs of a request are those of its tasks, and the one with its id. A text that contains the
// id makes no run one of them.
func TestService_EndedRuns(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}, live: true})
	request := newRunID()
	first := addRun(t, s, 11, func(r *orchestrator.Record) { r.RequestID = request })
	last := addRun(t, s, 12, func(r *orchestrator.Record) { r.RequestID = request; r.EndedAt = r.EndedAt.Add(time.Hour) })
	own := addRun(t, s, 13, func(r *orchestrator.Record) { r.Goal.Goal = `compare "request_id":"` + request + `"` })
	ended, err := s.Eraser().EndedRuns(t.Context(), request)
	if err != nil || !slices.Equal(ended.IDs, []string{first, last}) || time.Until(ended.At) < time.Hour {
		t.Errorf("got runs %+v and error %v, want %s and %s", ended, err, first, last)
	}
	if ended, err := s.Eraser().EndedRuns(t.Context(), own); err != nil || !slices.Equal(ended.IDs, []string{own}) {
		t.Errorf("got runs %+v and error %v, want %s", ended, err, own)
	}
	if ended, err := s.Eraser().EndedRuns(t.Context(), "unknown"); err != nil || len(ended.IDs) > 0 {
		t.Errorf("got runs %+v and error %v, want none", ended, err)
	}
	addRun(t, s, 14, func(r *orchestrator.Record) {
		r.RequestID, r.State, r.Owner = request, orchestrator.StateExecute, "another"
	})
	if ended, err := s.Eraser().EndedRuns(t.Context(), request); errorCode(err) != contract.CodeConflict {
		t.Errorf("got runs %+v and error %v, want a conflict, because one is in progress", ended, err)
	}
}

// The erasure of a run wakes the readers that wait for it.
func TestService_EraseEndsReaders(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}, live: true})
	id := addRun(t, s, 1, unchanged)
	changed, stop := s.store.followers.follow(id)
	defer stop()
	if err := s.Eraser().DeleteRun(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, changed)
	if err := s.Eraser().DeleteRun(t.Context(), id); err != nil {
		t.Errorf("a second time: got error %v, want none", err)
	}
}

// Only runs of the request's tasks are cancelled. The one that waits ends at once; the one of
// another process is ending until that process ends it.
func TestService_CancelRuns(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}, live: true})
	request := newRunID()
	inProgress := func(requestID, owner string) func(r *orchestrator.Record) {
		return func(r *orchestrator.Record) {
			r.State, r.EndedAt, r.RequestID, r.Owner = orchestrator.StateExecute, time.Time{}, requestID, owner
		}
	}
	addRun(t, s, 11, func(r *orchestrator.Record) { r.RequestID = request })
	if cancelled, err := s.Eraser().CancelRuns(t.Context(), request, "ana"); cancelled || err != nil {
		t.Errorf("got %t and error %v, want none cancelled, because the run has ended", cancelled, err)
	}
	waiting := addRun(t, s, 12, func(r *orchestrator.Record) { inProgress(request, "")(r); park(r) })
	elsewhere := addRun(t, s, 13, inProgress(request, "another"))
	others := []string{
		addRun(t, s, 14, inProgress(newRunID(), "another")), addRun(t, s, 15, inProgress("", "another")),
	}
	for range 2 {
		if cancelled, err := s.Eraser().CancelRuns(t.Context(), request, "ana"); !cancelled || err != nil {
			t.Errorf("got %t and error %v, want runs cancelled", cancelled, err)
		}
	}
	if rec, err := s.store.get(t.Context(), waiting); err != nil || rec.Reason != contract.ReasonCancelled || rec.CancelledBy != "ana" {
		t.Errorf("got %+v and error %v, want the waiting run cancelled by ana", rec, err)
	}
	if rec, err := s.store.get(t.Context(), elsewhere); err != nil || rec.State.Terminal() || rec.CancelledBy != "ana" {
		t.Errorf("got %+v and error %v, want the run elsewhere to be ended by its process", rec, err)
	}
	if _, err := s.Eraser().EndedRuns(t.Context(), request); errorCode(err) != contract.CodeConflict || !strings.Contains(err.Error(), elsewhere+" is ending") {
		t.Errorf("got error %v, want that %s is ending", err, elsewhere)
	}
	for _, id := range others {
		if rec, err := s.store.get(t.Context(), id); err != nil || rec.CancelledBy != "" {
			t.Errorf("got %+v and error %v, want the run of another request unchanged", rec, err)
		}
	}
}
