package history_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/store"
)

func newEncodedResponse(id string) history.EncodedResponse {
	return history.EncodeResponse(history.Subject{Caller: &contract.Caller{Subject: "ana"}},
		&contract.Response{RequestID: id, Status: contract.StatusCompleted})
}

func TestJournal_LookupFindsResponseThatIsBeingRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.log.proceed = make(chan struct{})
		id := newID(t)
		if err := f.journal.RecordInBackground(t.Context(), newEncodedResponse(id)); err != nil {
			t.Fatal(err)
		}
		statuses := make(chan contract.Status, 1)
		go func() {
			defer close(statuses)
			resp, err := f.Request(t.Context(), id, &contract.Caller{Subject: "ana"})
			if err != nil {
				t.Error(err)
				return
			}
			statuses <- resp.Status
		}()
		synctest.Wait() // the lookup waits for the record
		close(f.log.proceed)
		if got := <-statuses; got != contract.StatusCompleted {
			t.Errorf("got status %q, want the completed request", got)
		}
	})
}

func TestJournal_CloseWaitsForBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{proceed: make(chan struct{})}
		j := history.NewJournal(log, "", false, slog.New(slog.DiscardHandler), time.Now)
		if err := j.RecordInBackground(t.Context(), newEncodedResponse("r")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := j.Close(ctx); err == nil {
			t.Error("got no error although the response is not recorded, want one")
		}
		log.proceed <- struct{}{}
		if err := j.Close(t.Context()); err != nil || len(log.records) != 1 {
			t.Errorf("got %v and %d records, want none and 1", err, len(log.records))
		}
		close(log.proceed)
		if err := j.RecordInBackground(t.Context(), newEncodedResponse("late")); err != nil || len(log.records) != 2 {
			t.Errorf("after Close: got %v and %d records, want the record at once", err, len(log.records))
		}
	})
}

// The second record of one request, by mistake, must not stop the writer of the log.
func TestJournal_RecordsResponseOfOneRequestTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{proceed: make(chan struct{})}
		j := history.NewJournal(log, "", false, slog.New(slog.DiscardHandler), time.Now)
		for range 2 {
			if err := j.RecordInBackground(t.Context(), newEncodedResponse("r")); err != nil {
				t.Fatal(err)
			}
		}
		close(log.proceed)
		synctest.Wait()
		if err := j.Close(t.Context()); err != nil || len(log.records) != 2 {
			t.Errorf("got %v and %d records, want none and 2", err, len(log.records))
		}
	})
}

// A response that cannot be written at once is recorded later: lookups find it until then.
func TestJournal_RecordsResponseAgain(t *testing.T) {
	for _, failure := range []error{store.ErrFull, store.ErrUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			log := &fakeLog{submitFails: failure}
			j := history.NewJournal(log, "", false, slog.New(slog.DiscardHandler), time.Now)
			if err := j.RecordInBackground(t.Context(), newEncodedResponse("r")); err != nil {
				t.Fatal(err)
			}
			if err := j.Await(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
			if len(log.records) == 0 && j.Unrecorded("r") == nil {
				t.Errorf("%v: got a lost response, want one that is recorded later", failure)
			}
			if err := j.Close(t.Context()); err != nil || len(log.records) != 1 {
				t.Errorf("%v: got %v and %d records, want none and 1", failure, err, len(log.records))
			}
		})
	}
}

// Beyond the limit callers wait for their records, so that memory stays bounded.
func TestJournal_BoundsBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{proceed: make(chan struct{})}
		j := history.NewJournal(log, "", false, slog.New(slog.DiscardHandler), time.Now)
		const limit = 256
		returned := make(chan error, 1)
		for range limit {
			if err := j.RecordInBackground(t.Context(), newEncodedResponse(newID(t))); err != nil {
				t.Fatal(err)
			}
		}
		go func() { returned <- j.RecordInBackground(t.Context(), newEncodedResponse("one more")) }()
		synctest.Wait()
		select {
		case err := <-returned:
			t.Errorf("got %v before the record was written, want to wait", err)
		default:
		}
		close(log.proceed)
		if err := <-returned; err != nil {
			t.Error(err)
		}
		if err := j.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
