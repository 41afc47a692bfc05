package execution

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// A result of a task that its agent has accepted is awaited even if the record cannot be
// changed, because the request would otherwise end without it. A request that has ended or
// moved to another process awaits nothing.
func TestDurableRecorder_AwaitsResultIfRecordCannotBeChanged(t *testing.T) {
	bucket, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "REQUESTS"})
	if err != nil {
		t.Fatal(err)
	}
	records := requests.NewStore(bucket, quota.Unlimited())
	for i, tt := range []struct {
		name   string
		change func(ctx context.Context, id string) error
		await  bool
	}{
		{"unchanged", func(context.Context, string) error { return nil }, true},
		{"damaged", func(ctx context.Context, id string) error {
			_, err := bucket.Put(ctx, "req."+id, []byte("{"))
			return err
		}, true},
		{"taken over", func(ctx context.Context, id string) error {
			_, err := records.Update(ctx, id, func(rec *requests.Record) error { rec.Epoch++; return nil })
			return err
		}, false},
		{"ended", func(ctx context.Context, id string) error {
			_, err := records.Update(ctx, id, func(rec *requests.Record) error {
				return rec.End(contract.StatusFailed, &contract.Response{Status: contract.StatusFailed}, time.Now())
			})
			return err
		}, false},
		{"not found", records.Delete, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := &requests.Record{
				ID: fmt.Sprint("r-", i), State: requests.StateRunning, Owner: "me", Epoch: 1,
				Decision: &contract.Decision{}, Parts: []requests.Part{{Agents: []string{"a"}}},
				CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour),
			}
			if err := rec.Send(requests.Task{ID: "t", AgentID: "a", SentAt: time.Now()}); err != nil {
				t.Fatal(err)
			}
			if err := records.Create(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if err := tt.change(t.Context(), rec.ID); err != nil {
				t.Fatal(err)
			}
			d := &DurableRecorder{owned: &OwnedRequest{
				Store: records, ID: rec.ID, Owner: "me", Epoch: 1, Permit: NoPermit{}, Logger: slog.New(slog.DiscardHandler),
			}}
			if out, done := d.AwaitingCallback(t.Context(), "t"); done == tt.await {
				t.Errorf("got %+v and ended: %v, want ended: %v", out, done, !tt.await)
			}
		})
	}
}

// The result of the only task is stored with the end of its request. If an agent posted a
// result before, that one counts, because the agent received a confirmation that it is stored.
func TestDurableRecorder_StoresResultWithTheEnd(t *testing.T) {
	records := openRecords(t)
	answered, posted := newResult("answered"), newResult("posted")
	for i, tt := range []struct {
		name       string
		parts      int
		callback   *contract.Result
		state      requests.TaskState // after the answer of the agent
		superseded bool
		want       *contract.Result
	}{
		{name: "one subtask", parts: 1, state: requests.TaskSent, want: answered},
		{name: "two parts", parts: 2, state: requests.TaskDone, want: answered},
		{name: "same result posted", parts: 1, callback: answered, state: requests.TaskDone, want: answered},
		{name: "another result was posted", parts: 1, callback: posted, state: requests.TaskDone, superseded: true, want: posted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := recordPlanned(t, records, fmt.Sprint("r-", i), tt.parts)
			owned := d.owned
			requireNoError(t, d.Sent(t.Context(), requests.Task{ID: "t", AgentID: "a", SentAt: time.Now()}, false))
			if out := d.Finished(t.Context(), "t", dispatch.Outcome{Result: answered}); out.Result == nil {
				t.Fatalf("got %+v, want the result", out)
			}
			if tt.callback != nil {
				results := &StoredResults{Store: records, Logger: owned.Logger}
				requireNoError(t, results.StoreResult(t.Context(), contract.TaskGrant{TaskID: "t", RequestID: owned.ID, AgentID: "a"}, tt.callback))
			}
			stored, err := records.Get(t.Context(), owned.ID)
			requireNoError(t, err)
			if got := stored.Tasks[0].State; got != tt.state || stored.State != requests.StateRunning {
				t.Errorf("got a %s request with a task %s, want it running and %s", stored.State, got, tt.state)
			}
			superseded := false
			stored, err = owned.Change(t.Context(), func(rec *requests.Record) error {
				superseded = owned.IsSuperseded()
				return rec.End(contract.StatusCompleted, &contract.Response{Status: contract.StatusCompleted}, time.Now())
			})
			requireNoError(t, err)
			if superseded != tt.superseded {
				t.Errorf("got superseded: %v, want %v", superseded, tt.superseded)
			}
			if got, want := stored.Tasks[0].ResultHash, requests.ResultHash(tt.want); got != want {
				t.Errorf("got the hash %s, want %s", got, want)
			}
		})
	}
}

// A process that stops before the end of the request stores the result for the next one.
func TestOwnedRequest_StoresTheResultWithoutTheEnd(t *testing.T) {
	records := openRecords(t)
	d := recordPlanned(t, records, "r", 1)
	owned := d.owned
	requireNoError(t, d.Sent(t.Context(), requests.Task{ID: "t", AgentID: "a", SentAt: time.Now()}, false))
	d.Finished(t.Context(), "t", dispatch.Outcome{Result: newResult("done")})
	for range 2 {
		owned.StoreDeferred(t.Context())
		stored, err := records.Get(t.Context(), owned.ID)
		requireNoError(t, err)
		if task := stored.Tasks[0]; task.State != requests.TaskDone || task.Result == nil {
			t.Errorf("got the task %+v, want it done with its result", task)
		}
	}
}

// The stored record has more about a task than the posted result: its number of attempts,
// or that it waits.
func TestDurableRecorder_StoresPostedResultAtOnce(t *testing.T) {
	records := openRecords(t)
	posted := newResult("posted")
	for name, pull := range map[string]*requests.Pull{
		"accepted": nil,
		"pulled":   {BeginBy: time.Now().Add(time.Minute), DueBy: time.Now().Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			d := recordPlanned(t, records, name, 1)
			requireNoError(t, d.Sent(t.Context(), requests.Task{ID: "t", AgentID: "a", SentAt: time.Now(), Pull: pull}, pull != nil))
			if pull == nil {
				d.AwaitingCallback(t.Context(), "t")
			} else {
				_, err := records.Update(t.Context(), name, func(rec *requests.Record) error {
					return rec.Lease("t", "a", "instance", 1, time.Now())
				})
				requireNoError(t, err)
			}
			results := &StoredResults{Store: records, Logger: d.owned.Logger}
			requireNoError(t, results.StoreResult(t.Context(), contract.TaskGrant{TaskID: "t", RequestID: name, AgentID: "a"}, posted))
			out := d.Finished(t.Context(), "t", dispatch.Outcome{Result: posted})
			if out.Result == nil || out.Attempts != 1 {
				t.Errorf("got %+v, want the result of attempt 1", out)
			}
		})
	}
}

func openRecords(t *testing.T) *requests.Store {
	t.Helper()
	bucket, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "REQUESTS"})
	requireNoError(t, err)
	return requests.NewStore(bucket, quota.Unlimited())
}

// recordPlanned stores a planned request, and returns its recorder.
func recordPlanned(t *testing.T, records *requests.Store, id string, parts int) *DurableRecorder {
	t.Helper()
	rec := &requests.Record{
		ID: id, State: requests.StatePlanned, Owner: "me", Epoch: 1, Decision: &contract.Decision{},
		CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour),
	}
	for range parts {
		rec.Parts = append(rec.Parts, requests.Part{Agents: []string{"a"}})
	}
	requireNoError(t, records.Create(t.Context(), rec))
	return &DurableRecorder{
		owned:    &OwnedRequest{Store: records, ID: id, Owner: "me", Epoch: 1, Permit: NoPermit{}, Logger: slog.New(slog.DiscardHandler)},
		draining: func() bool { return false }, mayDefer: true,
	}
}

func newResult(text string) *contract.Result {
	return &contract.Result{TaskID: "t", Status: contract.ResultSuccess, Explanations: []string{text}}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
