package asyncrun

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// failingLog is an AuditLog that cannot be read.
type failingLog struct{ err error }

func (l failingLog) Find(context.Context, string) (audit.RequestRecords, error) {
	return audit.RequestRecords{}, l.err
}

func (failingLog) Unfinished(context.Context) ([]audit.Record, error) { return nil, nil }

// An agent posts its result again if the router answers 503, and gives up on any other
// error.
func TestPeers_LookupErrorsAreTemporary(t *testing.T) {
	grant := contract.TaskGrant{RequestID: "r", TaskID: "t", AgentID: "a"}
	for _, tc := range []struct {
		err  error
		want error // nil = overloaded
	}{
		{store.ErrUnavailable, nil},
		{errors.New("a stream without a leader"), nil},
		{store.ErrNotFound, store.ErrNotFound},
	} {
		p := NewPeers(PeerConfig{
			Messages: NoMessages{}, Store: requests.Disabled(), AuditLog: failingLog{tc.err}, Logger: slog.New(slog.DiscardHandler),
			IsLive: func(string) bool { return true },
		})
		err := p.AwaitRecord(t.Context(), grant)
		e, ok := errors.AsType[*contract.Error](err)
		if tc.want == nil && (!ok || e.Code != contract.CodeOverloaded) || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%v: AwaitRecord returns %v", tc.err, err)
		}
		err = p.ForwardProgress(t.Context(), grant, &contract.Progress{Message: "half"})
		e, ok = errors.AsType[*contract.Error](err)
		if tc.want == nil && (!ok || e.Code != contract.CodeOverloaded) || tc.want != nil && !errors.Is(err, requests.ErrEnded) {
			t.Errorf("%v: ForwardProgress returns %v", tc.err, err)
		}
	}
}
