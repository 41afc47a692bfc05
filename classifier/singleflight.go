package classifier

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/run"
)

// maxInFlight bounds the model calls in flight. A bound is necessary, because a
// call does not end when its callers give up.
const maxInFlight = 256

// modelResult is the result of a call. It is shared by all callers that waited,
// and immutable.
type modelResult struct {
	clf       contract.Classification // valid if reason is ""
	reason    string                  // of the failure
	calls     []contract.ModelCall
	fromCache bool
}

// inFlightCall is a model call that any number of callers wait for (single
// flight, coalesced requests). No caller owns it, so none can cancel it for the
// others:
//
//	caller 1 ── starts ──┐                              ┌──▶ result
//	caller 2 ── joins ───┼──▶ call ─── model ── ends ───┼──▶ result
//	caller 3 ── joins ───┘        (own deadline)        │
//	             └─ gives up: lexical                   └──▶ cache
type inFlightCall struct {
	done   chan struct{} // closed after result is set
	result modelResult

	mu      sync.Mutex
	calls   []contract.ModelCall // finished calls
	purpose contract.CallPurpose // of the running call; "" = none
	since   time.Time            // start of the running call
}

// beginCall records the start of a call.
func (f *inFlightCall) beginCall(purpose contract.CallPurpose, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.purpose, f.since = purpose, now
}

// endCall records the end of the running call.
func (f *inFlightCall) endCall(call *contract.ModelCall, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call.Purpose, f.purpose = f.purpose, ""
	call.LatencyMS = contract.ToMilliseconds(now.Sub(f.since))
	f.calls = append(f.calls, *call)
}

// callsSoFar returns the finished calls, and the running one with the given
// outcome, for a caller that stops waiting.
func (f *inFlightCall) callsSoFar(outcome, detail string, now time.Time) []contract.ModelCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := slices.Clone(f.calls)
	if f.purpose != "" {
		calls = append(calls, contract.ModelCall{
			Purpose: f.purpose, Outcome: outcome, Detail: detail, LatencyMS: contract.ToMilliseconds(now.Sub(f.since)),
		})
	}
	return calls
}

// callGroup coalesces concurrent model calls by key.
type callGroup struct {
	group *run.Group

	mu       sync.Mutex
	inFlight map[cacheKey]*inFlightCall
	closed   bool
}

func newCallGroup() *callGroup {
	return &callGroup{group: run.New(context.Background()), inFlight: map[cacheKey]*inFlightCall{}}
}

// joinOrStart returns the call in flight for the key, or starts one that runs
// fly. If there is no call to wait for, it returns a result: the one that known
// finds, or the reason why no call can start. known is checked under the lock,
// because a call may have ended since the caller looked.
func (fs *callGroup) joinOrStart(k cacheKey, known func() (contract.Classification, bool), fly func(context.Context, *inFlightCall) modelResult) (*inFlightCall, modelResult) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.inFlight[k]; f != nil {
		return f, modelResult{}
	}
	if clf, ok := known(); ok {
		return nil, modelResult{clf: clf, fromCache: true}
	}
	switch {
	case fs.closed:
		return nil, modelResult{reason: llm.ReasonUnavailable}
	case len(fs.inFlight) >= maxInFlight:
		return nil, modelResult{reason: llm.ReasonOverloaded}
	}
	f := &inFlightCall{done: make(chan struct{})}
	fs.inFlight[k] = f
	fs.group.Go("ask the model", func(ctx context.Context) error {
		landing := modelResult{reason: llm.ReasonUnavailable} // used if fly panics or exits
		defer func() { fs.complete(k, f, landing) }()
		landing = fly(ctx, f)
		return nil
	})
	return f, modelResult{}
}

// complete publishes the result. Later callers find it in the cache, or start a
// new call.
func (fs *callGroup) complete(k cacheKey, f *inFlightCall, with modelResult) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.inFlight, k)
	f.result = with
	close(f.done)
}

// close prevents new calls, cancels those in flight and waits for them. Their
// failures are results, so there is no error to return.
func (fs *callGroup) close() {
	fs.mu.Lock()
	fs.closed = true
	fs.mu.Unlock()
	fs.group.Stop(nil)
	_ = fs.group.Wait()
}
