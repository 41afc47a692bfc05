package history_test

import (
	"slices"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// The orchestrations of a request can outlive it, if its process stopped. The sender of the request
// ends them by cancelling or erasing it, and no other caller does.
func TestService_EndsRunsOfEndedRequest(t *testing.T) {
	f := newFixture(t)
	id := f.record(t, alice)
	f.runs.open = true
	if _, err := f.Cancel(t.Context(), id, bob); errorCode(err) != contract.CodeForbidden {
		t.Errorf("cancelled by a colleague: got %v, want forbidden", err)
	}
	if err := f.Erase(t.Context(), id, bob); errorCode(err) != contract.CodeForbidden {
		t.Errorf("erased by a colleague: got %v, want forbidden", err)
	}
	if len(f.runs.cancelled) > 0 {
		t.Fatalf("got the runs cancelled by %q, want them unchanged", f.runs.cancelled)
	}
	if resp, err := f.Cancel(t.Context(), id, alice); err != nil || resp.Status != contract.StatusCompleted {
		t.Errorf("cancelled: got %+v, %v, want the response", resp, err)
	}
	if _, err := f.Cancel(t.Context(), id, alice); errorCode(err) != contract.CodeConflict {
		t.Errorf("cancelled again: got %v, want conflict", err)
	}
	f.runs.open = true
	if err := f.Erase(t.Context(), id, alice); err != nil {
		t.Errorf("erased: got %v, want no error", err)
	}
	if want := []string{"alice", "alice"}; !slices.Equal(f.runs.cancelled, want) {
		t.Errorf("got the runs cancelled by %q, want %q", f.runs.cancelled, want)
	}
}

// If the orchestrations cannot be cancelled, nothing is erased.
func TestService_ErasesNothingIfRunsCannotBeCancelled(t *testing.T) {
	f := newFixture(t)
	id := f.record(t, alice)
	f.runs.cancelFails = &contract.Error{Code: contract.CodeOverloaded}
	if _, err := f.Cancel(t.Context(), id, alice); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("cancel: got %v, want overloaded", err)
	}
	if err := f.Erase(t.Context(), id, alice); errorCode(err) != contract.CodeOverloaded || len(f.log.erasedBy) > 0 {
		t.Errorf("erase: got %v, and contents erased by %q, want overloaded, and none", err, f.log.erasedBy)
	}
}
