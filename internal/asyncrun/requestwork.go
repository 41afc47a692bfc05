package asyncrun

import (
	"context"
	"sync"

	"github.com/caprouter/caprouter/internal/run"
)

// maxRequestWork bounds the requests whose messages are handled at the same time.
const maxRequestWork = 256

// requestWork handles the messages about requests that need the store, in one goroutine
// for each request: a slow write delays neither other requests, nor other kinds of
// messages. It is safe for concurrent use.
type requestWork struct {
	group *run.Group
	limit int

	mu sync.Mutex
	// running has the work in progress, and whether another message has arrived since it
	// began.
	running map[workKey]bool
}

// workKey identifies the work that is done once for all messages that arrive meanwhile.
type workKey struct {
	kind      messageKind
	requestID string
}

func newRequestWork(group *run.Group, limit int) *requestWork {
	return &requestWork{group: group, limit: limit, running: map[workKey]bool{}}
}

// start calls fn in a goroutine of the group. While it runs, further calls with the same
// key only cause it to be called once more. It returns false if the limit is reached: the
// message counts as lost then.
func (w *requestWork) start(key workKey, fn func(ctx context.Context)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, running := w.running[key]; running {
		w.running[key] = true
		return true
	}
	if len(w.running) >= w.limit {
		return false
	}
	w.running[key] = false
	w.group.Go("handle a message about request "+key.requestID, func(ctx context.Context) error {
		for again := true; again; again = w.finish(key) {
			fn(ctx)
		}
		return nil
	})
	return true
}

// finish reports whether the work must be done once more. If not, it has ended.
func (w *requestWork) finish(key workKey) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[key] {
		w.running[key] = false
		return true
	}
	delete(w.running, key)
	return false
}
