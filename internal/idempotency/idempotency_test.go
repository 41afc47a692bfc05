package idempotency_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

var (
	alice = &contract.Caller{Subject: "alice", Tenant: "north"}
	bob   = &contract.Caller{Subject: "bob", Tenant: "north"}
)

// fakeRequests is the stored state of the first request with a key.
type fakeRequests struct {
	state   idempotency.State
	err     error
	resumed []string
}

func (f *fakeRequests) ReplayState(_ context.Context, requestID string) (idempotency.State, func() (*contract.Response, error), error) {
	return f.state, func() (*contract.Response, error) { return &contract.Response{RequestID: requestID}, nil }, f.err
}

func (f *fakeRequests) Resume(_ context.Context, requestID string) error {
	f.resumed = append(f.resumed, requestID)
	return nil
}

// fixture contains keys with a manual clock.
type fixture struct {
	*idempotency.Keys
	bucket   teststore.MemoryBucket
	requests fakeRequests
	now      time.Time
	starts   int
	owner    string          // of Keys
	live     map[string]bool // processes
}

func newFixture() *fixture {
	f := &fixture{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.restart()
	f.now = f.now.Add(time.Second)
	return f
}

// restart replaces the keys by those of a new process.
func (f *fixture) restart() {
	f.starts++
	f.owner = fmt.Sprint("process-", f.starts)
	f.live = map[string]bool{f.owner: true}
	f.Keys = f.process(f.owner)
}

// process returns the keys of a process that shares the store.
func (f *fixture) process(owner string) *idempotency.Keys {
	return idempotency.New(idempotency.Config{
		Bucket: &f.bucket, Shares: quota.Unlimited(), Requests: &f.requests, Owner: owner,
		IsLive: func(owner string) bool { return f.live[owner] },
		Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return f.now },
	})
}

func newKey(name, body string) *contract.Idempotency {
	return &contract.Idempotency{Key: name, Body: sha256.Sum256([]byte(body))}
}

func errorCode(err error) contract.Code {
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return e.Code
	}
	return ""
}

func (f *fixture) reserveFirst(t *testing.T) idempotency.Reservation {
	t.Helper()
	r, stored, err := f.Reserve(t.Context(), alice, newKey("k", "body"), "first")
	if err != nil || stored != nil || !r.Held() {
		t.Fatalf("got %+v, %+v, %v, want the key reserved", r, stored, err)
	}
	return r
}

func TestKeys_ReplaysOrRejectsSecondRequest(t *testing.T) {
	for _, tt := range []struct {
		name     string
		state    idempotency.State
		err      error
		age      time.Duration // of the reservation
		restart  bool
		want     contract.Code // "" = no error
		replayed bool
		resumed  bool
	}{
		{name: "stored", state: idempotency.Stored, replayed: true},
		{name: "executing", state: idempotency.Executing, want: contract.CodeConflict},
		{name: "undecided", state: idempotency.Undecided, want: contract.CodeConflict},
		{name: "undecided before this process", state: idempotency.Undecided, restart: true, replayed: true},
		{name: "orphaned", state: idempotency.Orphaned, replayed: true, resumed: true},
		{name: "erased", state: idempotency.Erased, want: contract.CodeResultExpired},
		{name: "unknown, just reserved", err: store.ErrNotFound, age: 59 * time.Second, want: contract.CodeConflict},
		{name: "unknown, after the grace period", err: store.ErrNotFound, age: 61 * time.Second},
		{name: "unknown, before this process", err: fmt.Errorf("wrapped: %w", store.ErrNotFound), restart: true},
		{name: "lookup fails", err: errors.New("broken"), want: contract.CodeOverloaded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			f.reserveFirst(t)
			f.requests.state, f.requests.err = tt.state, tt.err
			f.now = f.now.Add(tt.age)
			if tt.restart {
				f.restart()
			}
			r, stored, err := f.Reserve(t.Context(), alice, newKey("k", "body"), "second")
			if errorCode(err) != tt.want || (err != nil) != (tt.want != "") {
				t.Fatalf("got error %v, want code %q", err, tt.want)
			}
			if tt.replayed != (stored != nil) || stored != nil && (!stored.Replayed || stored.RequestID != "first") {
				t.Errorf("got %+v, want the first response replayed: %t", stored, tt.replayed)
			}
			if wantHeld := err == nil && stored == nil; r.Held() != wantHeld {
				t.Errorf("got the key reserved: %t, want %t", r.Held(), wantHeld)
			}
			if (len(f.requests.resumed) == 1) != tt.resumed {
				t.Errorf("got resumed %v, want %t", f.requests.resumed, tt.resumed)
			}
		})
	}
}

// TestKeys_ProtectExecutedRequest checks a request without stored data, in the process
// that executed it and in a later one.
func TestKeys_ProtectExecutedRequest(t *testing.T) {
	end := func(f *fixture, r idempotency.Reservation) {
		f.End(t.Context(), r, &contract.Response{RequestID: "first", Status: contract.StatusPartial})
	}
	for _, tt := range []struct {
		name   string
		before func(f *fixture, r idempotency.Reservation)
		want   contract.Status
	}{
		{"started", func(*fixture, idempotency.Reservation) {}, contract.StatusFailed},
		{"ended", end, contract.StatusPartial},
		{"ended by its stored name", func(f *fixture, r idempotency.Reservation) {
			end(f, idempotency.RestoreReservation(r.Name()))
		}, contract.StatusPartial},
		{"end of another request", func(f *fixture, r idempotency.Reservation) {
			f.End(t.Context(), r, &contract.Response{RequestID: "other", Status: contract.StatusPartial})
		}, contract.StatusFailed},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %t", tt.name, restart), func(t *testing.T) {
				f := newFixture()
				r := f.reserveFirst(t)
				if err := f.Start(t.Context(), r, "first"); err != nil {
					t.Fatal(err)
				}
				tt.before(f, r)
				f.requests.err = store.ErrNotFound
				f.now = f.now.Add(time.Hour)
				if restart {
					f.restart()
				}
				_, _, err := f.Reserve(t.Context(), alice, newKey("k", "body"), "second")
				e, ok := errors.AsType[*contract.Error](err)
				if !ok || e.Code != contract.CodeResultExpired || e.Ended.Status != tt.want || e.Ended.RequestID != "first" {
					t.Errorf("got %v, want result_expired with %s", err, tt.want)
				}
			})
		}
	}
}

// Two processes share the keys.
func TestKeys_LeavesRequestToLiveProcess(t *testing.T) {
	for _, tt := range []struct {
		name     string
		state    idempotency.State
		err      error
		age      time.Duration
		gone     bool
		want     contract.Code
		replayed bool
	}{
		{name: "nothing stored, process live", err: store.ErrNotFound, age: 5 * time.Minute, want: contract.CodeConflict},
		{name: "nothing stored, process live, deadline exceeded", err: store.ErrNotFound, age: time.Hour},
		{name: "nothing stored, process ended", err: store.ErrNotFound, gone: true},
		{name: "decision only, live", state: idempotency.Undecided, want: contract.CodeConflict},
		{name: "decision only, gone", state: idempotency.Undecided, gone: true, replayed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			f.reserveFirst(t)
			f.now = f.now.Add(tt.age)
			f.live["other"] = true
			f.live[f.owner] = !tt.gone
			f.requests.state, f.requests.err = tt.state, tt.err
			r, stored, err := f.process("other").Reserve(t.Context(), alice, newKey("k", "body"), "second")
			if errorCode(err) != tt.want || (err != nil) != (tt.want != "") || tt.replayed != (stored != nil) {
				t.Fatalf("got %+v and error %v, want code %q and a response: %t", stored, err, tt.want, tt.replayed)
			}
			if err != nil || stored != nil {
				return
			}
			// The first process cannot execute its request any more.
			if err := f.Start(t.Context(), r, "first"); errorCode(err) != contract.CodeOverloaded {
				t.Errorf("start of the first request: got %v, want an error", err)
			}
		})
	}
}

// The same key is sent to two processes at the same time.
func TestKeys_OneOfTwoProcessesReserves(t *testing.T) {
	f := newFixture()
	f.requests.err = store.ErrNotFound
	f.live["other"] = true
	processes := []*idempotency.Keys{f.Keys, f.process("other")}
	held, errs := make([]bool, 2), make([]error, 2)
	var both sync.WaitGroup
	for i, keys := range processes {
		both.Go(func() {
			r, _, err := keys.Reserve(t.Context(), alice, newKey("k", "body"), fmt.Sprint("request-", i))
			held[i], errs[i] = r.Held(), err
		})
	}
	both.Wait()
	if held[0] == held[1] || errorCode(errors.Join(errs...)) != contract.CodeConflict {
		t.Errorf("got reserved %v with errors %v, want one reserved and one conflict", held, errs)
	}
}

func TestKeys_StartFailsIfStoreFails(t *testing.T) {
	f := newFixture()
	r := f.reserveFirst(t)
	f.bucket.Err = errors.New("broken")
	if err := f.Start(t.Context(), r, "first"); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("got %v, want overloaded", err)
	}
}

func TestKeys_RejectsAnotherBody(t *testing.T) {
	f := newFixture()
	f.reserveFirst(t)
	if _, _, err := f.Reserve(t.Context(), alice, newKey("k", "other"), "second"); errorCode(err) != contract.CodeInvalidRequest {
		t.Errorf("got %v, want invalid_request", err)
	}
}

func TestKeys_SeparatesCallers(t *testing.T) {
	f := newFixture()
	f.reserveFirst(t)
	if r, stored, err := f.Reserve(t.Context(), bob, newKey("k", "other"), "second"); err != nil || stored != nil || !r.Held() {
		t.Errorf("got %+v, %+v, %v, want the key reserved for bob", r, stored, err)
	}
}

func TestKeys_ReservesReleasedKeyAgain(t *testing.T) {
	f := newFixture()
	r := f.reserveFirst(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.Release(ctx, r, "first")
	f.Release(ctx, r, "first")
	f.Release(ctx, idempotency.Reservation{}, "first")
	f.reserveFirst(t)
}

// A request that is rejected late does not release the key of the request that took it over.
func TestKeys_ReleaseKeepsKeyOfSuccessor(t *testing.T) {
	f := newFixture()
	f.requests.err = store.ErrNotFound
	first := f.reserveFirst(t)
	f.now = f.now.Add(2 * time.Minute)
	if r, _, err := f.Reserve(t.Context(), alice, newKey("k", "body"), "second"); err != nil || !r.Held() {
		t.Fatalf("got %+v, %v, want the key taken over", r, err)
	}
	f.Release(t.Context(), first, "first")
	if r, _, err := f.Reserve(t.Context(), alice, newKey("k", "body"), "third"); r.Held() || errorCode(err) != contract.CodeConflict {
		t.Errorf("got %+v, %v, want a conflict with the second request", r, err)
	}
}

func TestKeys_ReportsStoreErrors(t *testing.T) {
	f := newFixture()
	f.reserveFirst(t)
	f.bucket.Err = errors.New("broken")
	if _, _, err := f.Reserve(t.Context(), alice, newKey("k", "body"), "second"); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("got %v, want overloaded", err)
	}
}

func TestNoKeys_RejectsKeys(t *testing.T) {
	if _, _, err := (idempotency.NoKeys{}).Reserve(t.Context(), alice, newKey("k", "body"), "first"); errorCode(err) != contract.CodeInvalidRequest {
		t.Errorf("got %v, want invalid_request", err)
	}
}
