package execution

import (
	"context"
	"errors"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// storedResults is a ResultStore with one answer.
type storedResults struct{ err error }

func (s storedResults) StoreResult(context.Context, contract.TaskGrant, *contract.Result) error {
	return s.err
}

func newTestCallbacks(results ResultStore) *Callbacks {
	return NewCallbacks(CallbackConfig{Results: results, Requests: requests.Disabled(), InFlight: inflight.NewTable(), Peers: NoPeers{}})
}

func TestCallbacks_AcceptResultMapsErrors(t *testing.T) {
	tests := map[string]struct {
		err  error
		want contract.Code
	}{
		"stored":             {nil, ""},
		"unknown request":    {store.ErrNotFound, contract.CodeConflict},
		"unknown task":       {requests.ErrUnknownTask, contract.CodeNotFound},
		"different result":   {requests.ErrDifferentResult, contract.CodeConflict},
		"request has ended":  {requests.ErrEnded, contract.CodeConflict},
		"wrong state":        {requests.ErrTransition, contract.CodeConflict},
		"store rejects it":   {&contract.Error{Code: contract.CodeOverloaded}, contract.CodeOverloaded},
		"other task's token": {nil, contract.CodeInvalidRequest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			grant := contract.TaskGrant{TaskID: "t1", AgentID: "a"}
			result := &contract.Result{TaskID: "t1", Status: contract.ResultSuccess}
			if tt.want == contract.CodeInvalidRequest {
				result.TaskID = "t2"
			}
			err := newTestCallbacks(storedResults{tt.err}).AcceptResult(t.Context(), grant, result)
			var got contract.Code
			if e, ok := errors.AsType[*contract.Error](err); ok {
				got = e.Code
			} else if err != nil {
				t.Fatalf("got %v, want a *contract.Error", err)
			}
			if got != tt.want {
				t.Errorf("got code %q, want %q", got, tt.want)
			}
		})
	}
}
