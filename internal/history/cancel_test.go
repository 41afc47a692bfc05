package history_test

import (
	"errors"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

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
	f := newFixture(t, withStore(t))
	rec := &requests.Record{ID: newID(t), Caller: *alice, State: requests.StateAccepted, CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour)}
	rec.Request.RequestID = rec.ID
	if err := f.requests.Create(t.Context(), rec); err != nil {
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
