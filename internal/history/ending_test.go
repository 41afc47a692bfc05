package history_test

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A request that was just cancelled can be erased although its agents are still being stopped.
func TestService_EraseAwaitsEnd(t *testing.T) {
	f := newFixture(t, withStore(t))
	rec := &requests.Record{ID: newID(t), Caller: *alice, State: requests.StateAccepted, CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour)}
	rec.Request.RequestID = rec.ID
	if err := f.requests.Create(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	_, err := f.requests.Update(t.Context(), rec.ID, func(r *requests.Record) error {
		return r.End(contract.StatusCancelled, &contract.Response{RequestID: rec.ID, Status: contract.StatusCancelled}, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	f.runs.endings = 2
	erased := make(chan error, 1)
	go func() { erased <- f.Erase(t.Context(), rec.ID, alice) }()
	if err := f.requests.RemoveOpen(t.Context(), rec.ID); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, erased); err != nil || f.runs.endings > 0 {
		t.Errorf("got %v and %d ends that were not awaited, want none", err, f.runs.endings)
	}
}

func TestAwaitEnding_EndsWithContext(t *testing.T) {
	ctx, disconnect := context.WithCancel(t.Context())
	checks := 0
	err := history.AwaitEnding(ctx, func(context.Context) error {
		checks++
		disconnect()
		return history.NewEndingError("the request")
	})
	if errorCode(err) != contract.CodeConflict || checks != 1 {
		t.Errorf("got %v after %d checks, want conflict after one", err, checks)
	}
}
