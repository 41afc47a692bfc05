package asyncrun

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/router/plan"
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

// messages is a Messenger whose messages the test sends.
type messages chan message

func (messages) Broadcast(string, []byte) error { return nil }

func (ch messages) Subscribe(ctx context.Context, _ string, fn func([]byte)) error {
	for {
		select {
		case m := <-ch:
			data, err := strictjson.Marshal(m)
			if err != nil {
				return err
			}
			fn(data)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// slowPromoter is a Promoter whose write ends when the test confirms it. Its agent, too,
// answers only when the request ends.
type slowPromoter struct {
	task    chan string
	confirm chan struct{}
}

func (p *slowPromoter) Promote(context.Context, func(*requests.Record) error) (*execution.OwnedRequest, error) {
	<-p.confirm
	return nil, errors.New("the disk is full")
}

func (p *slowPromoter) Send(ctx context.Context, call dispatch.Call) dispatch.Outcome {
	if err := call.BeforeSend(ctx); err == nil {
		p.task <- call.Task.TaskID
	}
	<-ctx.Done()
	return dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskWasCancelled}}
}

func (*slowPromoter) Prepare(context.Context, dispatch.Call) dispatch.Token {
	return dispatch.Token{}
}

func (*slowPromoter) CancelTask(dispatch.Call) {}

// oneAgent is a registry in which each agent is the same one.
type oneAgent struct{ contract.RegistryEntry }

func (a *oneAgent) Entry(string) *contract.RegistryEntry { return &a.RegistryEntry }

func (a *oneAgent) Changed() <-chan struct{} { return nil }

func (a *oneAgent) Eligible(*plan.Part, string) (*contract.RegistryEntry, *contract.TaskError) {
	return &a.RegistryEntry, nil
}

// A slow write for a message delays no other message, and Follow waits for it when it ends.
func TestPeers_FollowHandlesMessagesWhileWriteIsSlow(t *testing.T) {
	redactor, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		table := inflight.NewTable()
		callbacks := execution.NewCallbacks(execution.CallbackConfig{Requests: requests.Disabled(), InFlight: table, Peers: execution.NoPeers{}})
		slow := &slowPromoter{task: make(chan string), confirm: make(chan struct{})}
		executor := execution.New(slow, callbacks, func() string { return "task" }, time.Now)
		ctx, cancelSlow := context.WithCancelCause(t.Context())
		table.Add(inflight.NewRequest("slow", "", &contract.Caller{}, cancelSlow))
		other, cancelOther := context.WithCancelCause(t.Context())
		table.Add(inflight.NewRequest("other", "", &contract.Caller{}, cancelOther))
		var executed sync.WaitGroup
		executed.Go(func() {
			executor.NewExecution(&execution.Run{
				Persistence: executor.Synchronous(slow), Registry: &oneAgent{contract.RegistryEntry{ID: "a"}},
				Request: &execution.Request{Request: &contract.Request{RequestID: "slow"}, Caller: &contract.Caller{}, Masking: redactor.StartMasking()},
				Plan:    &plan.Plan{Parts: []plan.Part{{Agents: []string{"a"}}}}, Emit: func(*contract.Event) {},
			}).Execute(ctx)
		})
		taskID := testkit.Receive(t, slow.task)

		ch := make(messages)
		p := NewPeers(PeerConfig{Messages: ch, Logger: slog.New(slog.DiscardHandler)})
		following, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Follow(following, callbacks, table) }()
		for range 3 {
			ch <- message{Kind: recordNeeded, RequestID: "slow", TaskID: taskID}
		}
		ch <- message{Kind: cancelRequest, RequestID: "other"}
		synctest.Wait()
		if !errors.Is(context.Cause(other), inflight.ErrCancelled) {
			t.Errorf("got cause %v while another write is slow, want %v", context.Cause(other), inflight.ErrCancelled)
		}
		stop()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("got Follow ended with %v while it writes, want it to wait", err)
		default:
		}
		close(slow.confirm)
		if err := testkit.Receive(t, ended); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		cancelSlow(nil)
		executed.Wait()
	})
}
