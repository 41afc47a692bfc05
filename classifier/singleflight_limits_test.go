package classifier_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// TestSingleFlight_ModelIgnoresItsContext checks that a model that ignores its
// context delays no caller.
func TestSingleFlight_ModelIgnoresItsContext(t *testing.T) {
	m := &fakeModel{do: func(_ context.Context, nth int, req *llm.Request) (*llm.Reply, error) {
		<-time.After(time.Minute)
		return &llm.Reply{Text: goodReply}, nil
	}}
	inBubble(t, classifier.Config{Model: m, Timeout: time.Second}, func(t *testing.T, c *classifier.Classifier) {
		for range 3 {
			begun := time.Now()
			got := c.Classify(t.Context(), input(sourceRegistry(), "review this python code"))
			if took := time.Since(begun); got.Reason != llm.ReasonTimeout || took != time.Second {
				t.Errorf("got reason %q after %s, want %q after 1s", got.Reason, took, llm.ReasonTimeout)
			}
		}
		if n := m.calls(); n != 1 {
			t.Errorf("got %d calls, want 1", n)
		}
	})
}

// TestSingleFlight_LimitsCallsInFlight checks the limit of calls in flight, which continue after
// their callers have ended.
func TestSingleFlight_LimitsCallsInFlight(t *testing.T) {
	const most = 256
	m := &fakeModel{do: neverReply()}
	inBubble(t, classifier.Config{Model: m}, func(t *testing.T, c *classifier.Classifier) {
		in := input(sourceRegistry(), "")
		var all []*pendingCall
		for i := range most + 10 {
			in.Prompt = fmt.Sprintf("review this python code, number %d", i)
			all = append(all, start(t.Context(), c, in))
			synctest.Wait()
		}
		for i, a := range all {
			<-a.done
			want, took := llm.ReasonTimeout, classifier.DefaultTimeout
			if i >= most {
				want, took = llm.ReasonOverloaded, 0
			}
			if a.clf.Reason != want || a.took != took || a.clf.Intent != "code_review" {
				t.Errorf("question %d: got %s, reason %q after %s; want code_review, %q after %s", i, a.clf.Intent, a.clf.Reason, a.took, want, took)
			}
		}
		if n := m.calls(); n != most {
			t.Errorf("got %d calls, want %d", n, most)
		}
	})
}

// TestClose_CancelsCallsInFlight checks that Close cancels calls in flight,
// waits for them and starts no more.
func TestClose_CancelsCallsInFlight(t *testing.T) {
	returned := make(chan struct{})
	m := &fakeModel{do: func(ctx context.Context, _ int, _ *llm.Request) (*llm.Reply, error) {
		<-ctx.Done()
		close(returned)
		return nil, ctx.Err()
	}}
	inBubble(t, classifier.Config{Model: m}, func(t *testing.T, c *classifier.Classifier) {
		in := input(sourceRegistry(), "review this python code")
		a := start(t.Context(), c, in)
		synctest.Wait()
		c.Close()
		select {
		case <-returned:
		default:
			t.Error("got Close return before the call")
		}
		<-a.done
		for name, clf := range map[string]contract.Classification{"during Close": a.clf, "after Close": c.Classify(t.Context(), in)} {
			if clf.Reason != llm.ReasonUnavailable || clf.Intent != "code_review" || clf.Source != contract.SourceLexical {
				t.Errorf("%s: got %s from %s, reason %q; want code_review from lexical, %q", name, clf.Intent, clf.Source, clf.Reason, llm.ReasonUnavailable)
			}
		}
		c.Close() // a second Close has no effect
	})
}

// TestSingleFlight_ModelExitsItsGoroutine checks that a call counts as failed if the model exits
// its goroutine.
func TestSingleFlight_ModelExitsItsGoroutine(t *testing.T) {
	m := &fakeModel{do: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
		runtime.Goexit()
		return nil, nil
	}}
	got := open(t, classifier.Config{Model: m}).Classify(t.Context(), input(sourceRegistry(), "review this python code"))
	if got.Reason != llm.ReasonUnavailable {
		t.Errorf("got reason %q, want %q", got.Reason, llm.ReasonUnavailable)
	}
}
