package classifier_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// pendingCall is one Classify in its own goroutine.
type pendingCall struct {
	clf  contract.Classification
	took time.Duration
	done chan struct{}
}

func start(ctx context.Context, c *classifier.Classifier, in classifier.Input) *pendingCall {
	a := &pendingCall{done: make(chan struct{})}
	begun := time.Now()
	go func() {
		defer close(a.done)
		a.clf = c.Classify(ctx, in)
		a.took = time.Since(begun)
	}()
	return a
}

// replyAfter replies after a delay, or ends with the context.
func replyAfter(d time.Duration, then script) script {
	return func(ctx context.Context, nth int, req *llm.Request) (*llm.Reply, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return then(ctx, nth, req)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// inBubble runs a test with a classifier in a synctest bubble.
func inBubble(t *testing.T, cfg classifier.Config, body func(t *testing.T, c *classifier.Classifier)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := classifier.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		body(t, c)
	})
}

// TestSingleFlight_SharesOneCall checks that 50 callers share one call and its result, with and
// without a cache. A later caller gets the cached result, or starts a new call.
func TestSingleFlight_SharesOneCall(t *testing.T) {
	for _, entries := range []int{0, 10} {
		t.Run(fmt.Sprintf("%d entries", entries), func(t *testing.T) {
			m := &fakeModel{do: replyAfter(time.Second, replyTexts(goodReply))}
			cfg := classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: entries}}
			inBubble(t, cfg, func(t *testing.T, c *classifier.Classifier) {
				in := input(sourceRegistry(), "review this python code")
				var callers []*pendingCall
				for range 50 {
					callers = append(callers, start(t.Context(), c, in))
				}
				for i, a := range callers {
					<-a.done
					if a.clf.Source != contract.SourceLLM || a.took != time.Second {
						t.Errorf("caller %d: got %s after %s, want llm after 1s", i, a.clf.Source, a.took)
					}
					if diff := cmp.Diff(callers[0].clf, a.clf); diff != "" {
						t.Errorf("caller %d: got another result (-first +this):\n%s", i, diff)
					}
				}
				if n := m.calls(); n != 1 {
					t.Errorf("got %d calls, want 1", n)
				}
				want := contract.SourceLLM
				if entries > 0 {
					want = contract.SourceCache
				}
				if got := c.Classify(t.Context(), in).Source; got != want {
					t.Errorf("later caller: got %s, want %s", got, want)
				}
			})
		})
	}
}

// TestSingleFlight_SharesFailures checks that callers share a failure, which is not cached.
func TestSingleFlight_SharesFailures(t *testing.T) {
	m := &fakeModel{do: func(ctx context.Context, nth int, req *llm.Request) (*llm.Reply, error) {
		if nth == 0 {
			return replyAfter(time.Second, failWith(&llm.Error{Reason: llm.ReasonRateLimited}))(ctx, nth, req)
		}
		return replyTexts(goodReply)(ctx, nth, req)
	}}
	inBubble(t, classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 10}}, func(t *testing.T, c *classifier.Classifier) {
		in := input(sourceRegistry(), "review this python code")
		first, second := start(t.Context(), c, in), start(t.Context(), c, in)
		for _, a := range []*pendingCall{first, second} {
			<-a.done
			if a.clf.Source != contract.SourceLexical || a.clf.Reason != llm.ReasonRateLimited || len(a.clf.Calls) != 1 {
				t.Errorf("got %s, reason %q, %d calls; want lexical, %q, 1", a.clf.Source, a.clf.Reason, len(a.clf.Calls), llm.ReasonRateLimited)
			}
		}
		if n := m.calls(); n != 1 {
			t.Errorf("got %d calls, want 1", n)
		}
		if got := c.Classify(t.Context(), in); got.Source != contract.SourceLLM {
			t.Errorf("later caller: got %s, want llm", got.Source)
		}
	})
}

// TestSingleFlight_CallersTimeOutAlone checks that a caller times out by its own deadline, while
// the call continues for others and for the cache.
func TestSingleFlight_CallersTimeOutAlone(t *testing.T) {
	const modelTakes = time.Second
	in := input(sourceRegistry(), "review this python code")
	deadline := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	tests := []struct {
		name    string
		context func(context.Context) (context.Context, context.CancelFunc)
		took    time.Duration
		source  contract.Source
		detail  string
	}{
		{"no deadline", context.WithCancel, modelTakes, contract.SourceLLM, ""},
		{"long deadline", deadline(time.Minute), modelTakes, contract.SourceLLM, ""},
		{"deadline above twice the reply time", deadline(2*modelTakes + 2), modelTakes, contract.SourceLLM, ""},
		{"deadline of 1 s", deadline(time.Second), 500 * time.Millisecond, contract.SourceLexical, "no reply within 500ms"},
		{"deadline of 20 ms", deadline(20 * time.Millisecond), 10 * time.Millisecond, contract.SourceLexical, "no reply within 10ms"},
		{"deadline of 2 ns", deadline(2), 1, contract.SourceLexical, "no reply within 0s"},
		{"cancelled during the call", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			timer := time.AfterFunc(300*time.Millisecond, cancel)
			return ctx, func() { timer.Stop(); cancel() }
		}, 300 * time.Millisecond, contract.SourceLexical, "no reply within 2s"},
	}
	for _, tt := range tests {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, starts the call: %v", tt.name, first), func(t *testing.T) {
				m := &fakeModel{do: replyAfter(modelTakes, replyTexts(goodReply))}
				inBubble(t, classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 10}}, func(t *testing.T, c *classifier.Classifier) {
					ctx, cancel := tt.context(t.Context())
					defer cancel()
					var patient, caller *pendingCall
					if first {
						caller = start(ctx, c, in)
						synctest.Wait()
						patient = start(t.Context(), c, in)
					} else {
						patient = start(t.Context(), c, in)
						synctest.Wait()
						caller = start(ctx, c, in)
					}
					<-caller.done
					if caller.clf.Source != tt.source || caller.took != tt.took {
						t.Errorf("got %s after %s, want %s after %s", caller.clf.Source, caller.took, tt.source, tt.took)
					}
					if tt.detail != "" {
						want := []contract.ModelCall{{
							Purpose: contract.PurposeClassify, Outcome: llm.ReasonTimeout, Detail: tt.detail,
							LatencyMS: float64(tt.took.Round(time.Microsecond)) / float64(time.Millisecond),
						}}
						if diff := cmp.Diff(want, caller.clf.Calls); diff != "" || caller.clf.Reason != llm.ReasonTimeout {
							t.Errorf("got reason %q, calls (-want +got):\n%s", caller.clf.Reason, diff)
						}
					}
					<-patient.done
					if patient.clf.Source != contract.SourceLLM || patient.took != modelTakes {
						t.Errorf("other caller: got %s after %s, want llm after %s", patient.clf.Source, patient.took, modelTakes)
					}
					if n := m.calls(); n != 1 {
						t.Errorf("got %d calls, want 1", n)
					}
				})
			})
		}
	}
}

// TestSingleFlight_LateReplyIsCached checks that a reply after the caller's
// deadline is cached.
func TestSingleFlight_LateReplyIsCached(t *testing.T) {
	m := &fakeModel{do: replyAfter(1500*time.Millisecond, replyTexts(goodReply))}
	inBubble(t, classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 10}}, func(t *testing.T, c *classifier.Classifier) {
		in := input(sourceRegistry(), "review this python code")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if got := c.Classify(ctx, in); got.Source != contract.SourceLexical || got.Reason != llm.ReasonTimeout {
			t.Errorf("got %s, reason %q; want lexical, %q", got.Source, got.Reason, llm.ReasonTimeout)
		}
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		if got := c.Classify(t.Context(), in); got.Source != contract.SourceCache || m.calls() != 1 {
			t.Errorf("later caller: got %s after %d calls, want cache after 1", got.Source, m.calls())
		}
	})
}

// TestClassify_ExpiredContextStartsNoCall checks that an expired context starts
// no call.
func TestClassify_ExpiredContextStartsNoCall(t *testing.T) {
	m := &fakeModel{do: replyTexts(goodReply)}
	c := open(t, classifier.Config{Model: m})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := c.Classify(ctx, input(sourceRegistry(), "review this python code"))
	if got.Reason != llm.ReasonTimeout || got.Intent != "code_review" || m.calls() != 0 {
		t.Errorf("got %s, reason %q after %d calls; want code_review, %q after none", got.Intent, got.Reason, m.calls(), llm.ReasonTimeout)
	}
	if got.ModelUse == nil || len(got.Calls) != 0 {
		t.Errorf("got use %+v, want one without calls", got.ModelUse)
	}
}

// TestClassify_OneTimeoutForAllCalls checks that the timeout bounds all calls
// together.
func TestClassify_OneTimeoutForAllCalls(t *testing.T) {
	tests := []struct {
		name string
		do   script
		want []string
	}{
		{"no reply", neverReply(), []string{"classify llm_timeout"}},
		{"no reply to the repair", func(ctx context.Context, nth int, req *llm.Request) (*llm.Reply, error) {
			if nth == 0 {
				return replyAfter(1200*time.Millisecond, replyTexts("nonsense"))(ctx, nth, req)
			}
			return neverReply()(ctx, nth, req)
		}, []string{"classify llm_invalid_json", "repair llm_timeout"}},
		{"two slow replies", replyAfter(1200*time.Millisecond, replyTexts("nonsense", goodReply)), []string{"classify llm_invalid_json", "repair llm_timeout"}},
		{"slow replies within the timeout", replyAfter(999*time.Millisecond, replyTexts("nonsense", goodReply)), []string{"classify llm_invalid_json", "repair ok"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, classifier.Config{Model: &fakeModel{do: tt.do}}, func(t *testing.T, c *classifier.Classifier) {
				begun := time.Now()
				got := c.Classify(t.Context(), input(sourceRegistry(), "review this python code"))
				if diff := cmp.Diff(tt.want, outcomes(&got)); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if took := time.Since(begun); took > classifier.DefaultTimeout {
					t.Errorf("got a call of %s, want at most %s", took, classifier.DefaultTimeout)
				}
				checkUse(t, &got)
			})
		})
	}
}

// hookContext is a context that calls a hook when its deadline is first read.
type hookContext struct {
	context.Context //nolint:containedctx // it is one
	once            *sync.Once
	hook            func()
}

func (h hookContext) Deadline() (time.Time, bool) {
	h.once.Do(h.hook)
	return h.Context.Deadline()
}

// TestSingleFlight_FindsReplyCachedMeanwhile checks that a reply is found that arrives between the
// cache lookup and the start of a call.
func TestSingleFlight_FindsReplyCachedMeanwhile(t *testing.T) {
	m := &fakeModel{do: replyTexts(goodReply)}
	c := open(t, classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 10}})
	in := input(sourceRegistry(), "review this python code")
	ctx := hookContext{t.Context(), new(sync.Once), func() { c.Classify(t.Context(), in) }}
	if got := c.Classify(ctx, in); got.Source != contract.SourceCache || got.Intent != "code_review" || m.calls() != 1 {
		t.Errorf("got %s from %s after %d calls, want code_review from cache after 1", got.Intent, got.Source, m.calls())
	}
}

// TestSingleFlight_ManyCallers checks random concurrent callers: each gets a result in time, and at
// most one call is running per key.
func TestSingleFlight_ManyCallers(t *testing.T) {
	s := sourceRegistry()
	words := input(s, "").Lexical
	rapid.Check(t, func(rt *rapid.T) {
		type caller struct {
			prompt      string
			wait, limit time.Duration
		}
		callers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) caller {
			return caller{
				prompt: rapid.SampledFrom([]string{"review this python code", "cost analysis", "a joke"}).Draw(t, "prompt"),
				wait:   time.Duration(rapid.IntRange(0, 3000).Draw(t, "wait")) * time.Millisecond,
				limit:  time.Duration(rapid.IntRange(1, 6000).Draw(t, "limit")) * time.Millisecond,
			}
		}), 1, 12).Draw(rt, "callers")
		takes := time.Duration(rapid.IntRange(0, 3000).Draw(rt, "takes")) * time.Millisecond
		texts := rapid.SliceOfN(rapid.SampledFrom([]string{goodReply, "x", ""}), 1, 4).Draw(rt, "texts")
		synctest.Test(t, func(t *testing.T) {
			m := &fakeModel{do: replyAfter(takes, replyTexts(texts...))}
			c, err := classifier.New(classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 10}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var all sync.WaitGroup
			for _, caller := range callers {
				all.Go(func() {
					<-time.After(caller.wait)
					ctx, cancel := context.WithTimeout(t.Context(), caller.limit)
					defer cancel()
					begun := time.Now()
					clf := c.Classify(ctx, classifier.Input{Prompt: caller.prompt, Catalogue: s, Lexical: words})
					if took, most := time.Since(begun), min(caller.limit/2, classifier.DefaultTimeout); took > most {
						t.Errorf("%+v: got a result after %s, want at most %s", caller, took, most)
					}
					checkReply(t, s, &clf)
				})
			}
			all.Wait()
		})
	})
}
