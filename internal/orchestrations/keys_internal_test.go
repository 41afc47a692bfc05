package orchestrations

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
)

// keyedSubmission is a goal with an idempotency key. The number distinguishes the ids.
func keyedSubmission(n int, body byte) Submission {
	sub := newSubmission()
	sub.ID = sub.ID[:len(sub.ID)-1] + fmt.Sprint(n)
	sub.Idempotency = &contract.Idempotency{Key: "k", Body: [32]byte{body}}
	return sub
}

func TestService_ExecutesGoalWithKeyOnce(t *testing.T) {
	s, journal := openService(t, &serviceConfig{servers: noServers{}})
	first, err := s.Submit(t.Context(), keyedSubmission(1, 0))
	if err != nil || first.Replayed {
		t.Fatalf("got %v, %v, want a new run", first, err)
	}
	waitConcluded(t, s, journal, first.OrchestrationID, "no_servers")
	for n := 2; n < 4; n++ {
		again, err := s.Submit(t.Context(), keyedSubmission(n, 0))
		if err != nil || !again.Replayed || again.OrchestrationID != first.OrchestrationID {
			t.Errorf("sent again: got %+v, %v, want run %s", again, err, first.OrchestrationID)
		}
	}

	other := keyedSubmission(4, 0)
	other.Caller = &contract.Caller{Subject: "bea"}
	if run, err := s.Submit(t.Context(), other); err != nil || run.Replayed || run.OrchestrationID != other.ID {
		t.Errorf("key of another caller: got %+v, %v, want a new run", run, err)
	}
	_, err = s.Submit(t.Context(), keyedSubmission(5, 1))
	checkCode(t, "another goal with the same key", err, contract.CodeInvalidRequest)
}

func TestService_RepeatsNoGoalWhoseRunIsGone(t *testing.T) {
	s, journal := openService(t, &serviceConfig{servers: noServers{}})
	first, err := s.Submit(t.Context(), keyedSubmission(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	waitConcluded(t, s, journal, first.OrchestrationID, "no_servers")
	if err := s.store.records.Delete(t.Context(), first.OrchestrationID); err != nil {
		t.Fatal(err)
	}
	_, err = s.Submit(t.Context(), keyedSubmission(2, 0))
	checkCode(t, "the run is deleted", err, contract.CodeResultExpired)
}

// A goal that was rejected can be sent again with its key.
func TestService_ReleasesKeyOfRejectedGoal(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}})
	for range maxRuns {
		if _, err := s.running.reserve(newRunID()+fmt.Sprint(len(s.running.byID)), false); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Submit(t.Context(), keyedSubmission(1, 0))
	checkCode(t, "too many runs", err, contract.CodeOverloaded)
	for id := range s.running.byID {
		s.running.release(id)
	}
	sub := keyedSubmission(2, 0)
	if run, err := s.Submit(t.Context(), sub); err != nil || run.Replayed || run.OrchestrationID != sub.ID {
		t.Errorf("sent again: got %+v, %v, want a new run", run, err)
	}
}

func checkCode(t *testing.T, name string, err error, want contract.Code) {
	t.Helper()
	e, ok := errors.AsType[*contract.Error](err)
	if !ok || e.Code != want {
		t.Errorf("%s: got %v, want %s", name, err, want)
	}
}

// Goals that are sent at the same time with one key are one run, and conflicts.
func TestService_ExecutesParallelGoalsOnce(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}})
	const goals = 6
	errs, runs := make([]error, goals), make([]*contract.Orchestration, goals)
	run.ForEach(t.Context(), goals, goals, func(ctx context.Context, i int) {
		runs[i], errs[i] = s.Submit(ctx, keyedSubmission(i, 0))
	})
	ids := map[string]bool{}
	for i, err := range errs {
		if err == nil {
			ids[runs[i].OrchestrationID] = true
			continue
		}
		checkCode(t, "sent at the same time", err, contract.CodeConflict)
	}
	if len(ids) != 1 {
		t.Errorf("got the runs %v, want one", ids)
	}
}
