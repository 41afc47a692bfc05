package inflight_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/inflight"
)

func TestTable_FindsRequestUntilItIsRemoved(t *testing.T) {
	table := inflight.NewTable()
	request := inflight.NewRequest("r", "trace", &contract.Caller{Subject: "alice"}, func(error) {})
	if got := table.Lookup("r"); got != nil {
		t.Errorf("before Add: got %v, want nil", got)
	}
	table.Add(request)
	if got := table.Lookup("r"); got != request {
		t.Errorf("after Add: got %v, want the request", got)
	}
	if got := request.State().Status; got != contract.StatusRunning {
		t.Errorf("got status %s, want running", got)
	}
	table.Remove(request, &contract.Response{RequestID: "r", Status: contract.StatusCompleted})
	select {
	case <-request.Done():
	default:
		t.Error("Done is open after Remove, want it closed")
	}
	if got := table.Lookup("r"); got != nil {
		t.Errorf("after Remove: got %v, want nil", got)
	}
	if got := request.State().Status; got != contract.StatusCompleted {
		t.Errorf("got status %s, want completed", got)
	}
}

// TestTable_KeepsNewerRequestWithSameID checks a request that was resumed before the
// run of its previous owner ended.
func TestTable_KeepsNewerRequestWithSameID(t *testing.T) {
	table := inflight.NewTable()
	older := inflight.NewRequest("r", "trace", &contract.Caller{}, func(error) {})
	newer := inflight.NewRequest("r", "trace", &contract.Caller{}, func(error) {})
	table.Add(older)
	table.Add(newer)
	table.Remove(older, nil)
	if got := table.Lookup("r"); got != newer {
		t.Errorf("got %p, want the newer request %p", got, newer)
	}
}

func TestRequest_CancelEndsContextWithCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	inflight.NewRequest("r", "trace", &contract.Caller{}, cancel).Cancel(inflight.ErrCancelled)
	if got := context.Cause(ctx); !errors.Is(got, inflight.ErrCancelled) {
		t.Errorf("got cause %v, want %v", got, inflight.ErrCancelled)
	}
}

func TestRequest_StateShowsCopyOfDecision(t *testing.T) {
	request := inflight.NewRequest("r", "trace", &contract.Caller{}, func(error) {})
	decision := &contract.Decision{DecisionID: "d"}
	request.SetDecision(decision)
	decision.DecisionID = "changed later"
	if got := request.State().Decision.DecisionID; got != "d" {
		t.Errorf("got decision %q, want d", got)
	}
}
