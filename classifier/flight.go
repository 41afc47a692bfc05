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

// maxFlights bounds how many different questions are asked at a time. Callers do
// not end them, so something else must.
const maxFlights = 256

// answer is what came of asking. It is shared by all who waited for it.
type answer struct {
	clf       contract.Classification // where reason is ""
	reason    string                  // why there is none
	calls     []contract.ModelCall
	fromCache bool
}

// flight is one question on its way to the model and back. Any number of callers
// wait for it; none of them owns it, so none can end it for the others:
//
//	caller 1 ── starts ──┐                              ┌──▶ answer
//	caller 2 ── joins ───┼──▶ flight ── model ── lands ─┼──▶ answer
//	caller 3 ── joins ───┘        (own deadline)        │
//	             └─ gives up: lexical                   └──▶ cache
type flight struct {
	landed chan struct{} // closed behind answer
	answer answer

	mu      sync.Mutex
	calls   []contract.ModelCall // that have ended
	purpose contract.CallPurpose // of the call under way; "" = none is
	since   time.Time            // it is
}

// begin notes that a call starts.
func (f *flight) begin(purpose contract.CallPurpose, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.purpose, f.since = purpose, now
}

// end notes what came of the call under way.
func (f *flight) end(call *contract.ModelCall, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call.Purpose, f.purpose = f.purpose, ""
	call.LatencyMS = milliseconds(now.Sub(f.since))
	f.calls = append(f.calls, *call)
}

// soFar returns the calls that have ended and, if one has not, that one with the
// outcome it has for whoever waits no longer.
func (f *flight) soFar(outcome, detail string, now time.Time) []contract.ModelCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := slices.Clone(f.calls)
	if f.purpose != "" {
		calls = append(calls, contract.ModelCall{
			Purpose: f.purpose, Outcome: outcome, Detail: detail, LatencyMS: milliseconds(now.Sub(f.since)),
		})
	}
	return calls
}

// flights are the questions that are being asked.
type flights struct {
	group *run.Group

	mu     sync.Mutex
	byKey  map[key]*flight
	closed bool
}

func newFlights() *flights {
	return &flights{group: run.New(context.Background()), byKey: map[key]*flight{}}
}

// join returns the flight of the key: the one there is, or a new one, which it
// sends off with fly. If there is none to wait for it returns the answer: what
// known finds, which is asked once more now that no flight of the key can land
// unseen, or why none can start.
func (fs *flights) join(k key, known func() (contract.Classification, bool), fly func(context.Context, *flight) answer) (*flight, answer) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.byKey[k]; f != nil {
		return f, answer{}
	}
	if clf, ok := known(); ok {
		return nil, answer{clf: clf, fromCache: true}
	}
	switch {
	case fs.closed:
		return nil, answer{reason: llm.ReasonUnavailable}
	case len(fs.byKey) >= maxFlights:
		return nil, answer{reason: llm.ReasonOverloaded}
	}
	f := &flight{landed: make(chan struct{})}
	fs.byKey[k] = f
	fs.group.Go("ask the model", func(ctx context.Context) error {
		landing := answer{reason: llm.ReasonUnavailable} // also where fly does not return
		defer func() { fs.land(k, f, landing) }()
		landing = fly(ctx, f)
		return nil
	})
	return f, answer{}
}

// land gives the answer to all who wait. Whoever asks again from now on asks
// anew, or finds the answer in the cache.
func (fs *flights) land(k key, f *flight, with answer) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.byKey, k)
	f.answer = with
	close(f.landed)
}

// close lets no more flights start, ends those that are under way and waits for
// them. Their failures are answers, so there is none to return.
func (fs *flights) close() {
	fs.mu.Lock()
	fs.closed = true
	fs.mu.Unlock()
	fs.group.Stop(nil)
	_ = fs.group.Wait()
}
