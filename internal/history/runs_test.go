package history_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
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

// Calls of tools and orchestrations have ids like requests, but are none: only their contents can
// be erased under such an id, by the caller of them or an administrator.
func TestService_HidesCallsAndOrchestrations(t *testing.T) {
	for _, kind := range []audit.Kind{audit.KindToolCall, audit.KindRun} {
		f := newFixture(t)
		id := newID(t)
		f.log.records = append(f.log.records, audit.Record{
			Kind: kind, RequestID: id, Tenant: "north", Subject: "alice", Action: "files.read", Status: contract.StatusCompleted, Content: []byte(`{}`),
		})
		for _, caller := range []*contract.Caller{alice, bob, foreign, operator} {
			_, requestErr := f.Request(t.Context(), id, caller)
			_, cancelErr := f.Cancel(t.Context(), id, caller)
			_, feedbackErr := f.AddFeedback(t.Context(), id, correct(), caller)
			eventsErr := f.Events(t.Context(), id, caller, 0, func(uint64, *contract.Event) error { return nil })
			mayErase := caller == alice || caller == operator
			for name, err := range map[string]error{"request": requestErr, "cancel": cancelErr, "feedback": feedbackErr, "events": eventsErr} {
				if errorCode(err) != contract.CodeNotFound {
					t.Errorf("%s, %s of %s: got %v, want not found", kind, name, caller.Subject, err)
					continue
				}
				if path := "/api/v1/orchestrations/" + id; strings.Contains(err.Error(), path) != (mayErase && kind == audit.KindRun) {
					t.Errorf("%s, %s of %s: got %v, want the path of an orchestration only for its caller", kind, name, caller.Subject, err)
				}
			}
			if mayErase {
				continue
			}
			if err := f.Erase(t.Context(), id, caller); errorCode(err) != contract.CodeNotFound {
				t.Errorf("%s, erase by %s: got %v, want not found", kind, caller.Subject, err)
			}
		}
		if err := f.Erase(t.Context(), id, alice); err != nil || f.log.records[0].Content != nil {
			t.Errorf("%s, erase: got %v and content %s, want none", kind, err, f.log.records[0].Content)
		}
	}
}
