package execution

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// The result of a task that an agent has accepted is awaited although the record cannot
// be changed: otherwise the request ends without it. A request that has ended, or is not
// executed here any more, awaits nothing.
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
		{"as it was", func(context.Context, string) error { return nil }, true},
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
