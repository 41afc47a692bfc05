package history

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// Limits of the responses that wait to be written in the background. Beyond them a request
// waits for its record.
const (
	maxBackground      = 256
	maxBackgroundBytes = 32 << 20
	backgroundTimeout  = 30 * time.Second
)

// background contains the responses that are being written while their callers have them
// already. It is safe for concurrent use.
type background struct {
	group *run.Group

	mu     sync.Mutex
	byID   map[string]chan struct{} // closed when the response is written, or cannot be
	bytes  int64
	closed bool
}

func newBackground() *background {
	return &background{group: run.New(context.Background()), byID: map[string]chan struct{}{}}
}

// begin returns a function to call when the response is written, or nil if there is no room for
// the response.
func (b *background) begin(requestID string, size int64) (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.byID) >= maxBackground || b.bytes+size > maxBackgroundBytes {
		return nil
	}
	done := make(chan struct{})
	b.byID[requestID] = done
	b.bytes += size
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.byID[requestID] == done {
			delete(b.byID, requestID)
		}
		b.bytes -= size
		close(done)
	}
}

// await waits until the response of a request, or with "" all responses, that are being
// written now have been.
func (b *background) await(ctx context.Context, requestID string) error {
	b.mu.Lock()
	var waiting []chan struct{}
	if requestID == "" {
		for _, done := range b.byID {
			waiting = append(waiting, done)
		}
	} else if done, ok := b.byID[requestID]; ok {
		waiting = append(waiting, done)
	}
	b.mu.Unlock()
	for _, done := range waiting {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// close waits for the responses that are being written, until ctx ends. Later ones are
// written while their callers wait.
func (b *background) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.await(ctx, "")
}

// RecordInBackground is RecordResponse for a request whose decision is recorded already: if
// the process ends before the response is, the next one records that it is not known. The
// caller need not wait for it. Await does, so that every lookup in this process finds it.
func (j *Journal) RecordInBackground(ctx context.Context, r EncodedResponse) error {
	rec := r.record
	end := j.background.begin(rec.RequestID, sizeOfRecord(&rec))
	if end == nil {
		return j.RecordResponse(ctx, r)
	}
	failed := func(err error) {
		ctx := context.WithoutCancel(ctx)
		j.background.group.Go("record a response again", func(context.Context) error {
			defer end()
			ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
			defer cancel()
			j.recordAgain(ctx, r, err)
			return nil
		})
	}
	rec.At, rec.Delayed = j.now().UTC(), true
	err := j.log.Submit(ctx, rec, func(err error) {
		if err != nil {
			failed(err)
			return
		}
		end()
	})
	if err != nil {
		failed(err)
	}
	return nil
}

// recordAgain records a response after an attempt that failed with err. Its agents have done
// their work already.
func (j *Journal) recordAgain(ctx context.Context, r EncodedResponse, err error) {
	r.record.Delayed = true
	if !errors.Is(err, store.ErrFull) { // it may have been written
		j.logFailure(ctx, &r.record, err)
		j.RecordLater(r)
	} else if j.RecordResponse(ctx, r) != nil { // which logs it
		j.RecordLater(r)
	}
}

// Await waits until the response to a request is recorded, or with "" those to all requests,
// if that happens in the background.
func (j *Journal) Await(ctx context.Context, requestID string) error {
	return j.background.await(ctx, requestID)
}

// Close waits until the responses that are written in the background are recorded, or ctx
// ends, and tries once more to record late ones. Responses may still be recorded.
func (j *Journal) Close(ctx context.Context) error {
	return errors.Join(j.background.close(ctx), j.backlog.close(ctx))
}
