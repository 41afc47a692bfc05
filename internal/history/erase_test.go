package history_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/store"
)

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
