package attempt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
)

func newCall(change ...func(*dispatch.Call)) dispatch.Call {
	c := dispatch.Call{Agent: &contract.RegistryEntry{ID: "quality_agent"}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func idempotent(c *dispatch.Call) { c.Agent.Endpoint.Idempotent = true }

func TestPolicy_LimitsDivideRemainingTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		name           string
		left           time.Duration
		n, standbys    int
		connect, reply time.Duration // of a non-idempotent agent
		share          time.Duration // until the reply of an idempotent agent
	}{
		{"last attempt of the last agent", 2 * time.Second, 2, 0, 2 * time.Second, 2 * time.Second, 2 * time.Second},
		{"first of two attempts", 2 * time.Second, 1, 0, time.Second, 2 * time.Second, time.Second},
		{"one standby", 3 * time.Second, 1, 1, time.Second, 3 * time.Second, time.Second},
		{"connect timeout limited to 3 s", time.Minute, 1, 1, 3 * time.Second, time.Minute, 20 * time.Second},
		{"10 ms left", 10 * time.Millisecond, 1, 3, 2 * time.Millisecond, 10 * time.Millisecond, 2 * time.Millisecond},
		{"no time left", 0, 1, 0, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Policy{ReplyBy: now.Add(tc.left), standbys: tc.standbys}
			if got, want := p.Limits(now, tc.n), (Limits{now.Add(tc.connect), now.Add(tc.reply)}); got != want {
				t.Errorf("not idempotent: got %v, want %v", got, want)
			}
			p.idempotent = true
			if got, want := p.Limits(now, tc.n), (Limits{now.Add(tc.connect), now.Add(tc.share)}); got != want {
				t.Errorf("idempotent: got %v, want %v", got, want)
			}
		})
	}
}

// The attempts at one agent leave the standbys their part of the time, and no limit is after the
// deadline.
func TestPolicy_LimitsLeaveTimeForStandbys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		left := time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "left"))
		standbys := rapid.IntRange(0, 19).Draw(t, "standbys")
		p := Policy{ReplyBy: now.Add(left), standbys: standbys, idempotent: true}
		for n := 1; n <= MaxAttempts; n++ {
			l := p.Limits(now, n)
			if l.ReplyBy.After(p.ReplyBy) || l.ConnectBy.After(l.ReplyBy) || l.ConnectBy.Sub(now) > maxConnect || l.ReplyBy.Before(now) {
				t.Fatalf("got limits %v at %v, deadline %v", l, now, p.ReplyBy)
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(l.ReplyBy.Sub(now))).Draw(t, "used")))
		}
		if got, want := p.ReplyBy.Sub(now), left*time.Duration(standbys)/time.Duration(MaxAttempts+standbys); got < want {
			t.Fatalf("got %v of %v left for %d standbys, want at least %v", got, left, standbys, want)
		}
	})
}

func TestNewPolicy_TakesEarliestDeadline(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := now.Add
	for _, tc := range []struct {
		name         string
		task         time.Time
		timeoutMS    int
		due, replyBy time.Time
	}{
		{"timeout of the agent", time.Time{}, 0, at(dispatch.DefaultTimeout), at(dispatch.DefaultTimeout)},
		{"timeout of the agent", time.Time{}, 1500, at(dispatch.DefaultTimeout), at(1500 * time.Millisecond)},
		{"deadline of the task", at(time.Second), 0, at(time.Second), at(time.Second)},
		{"agent's deadline earlier", at(10 * time.Second), 1500, at(10 * time.Second), at(1500 * time.Millisecond)},
		{"task's deadline earlier", at(time.Second), 1500, at(time.Second), at(time.Second)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := NewPolicy(t.Context(), newCall(func(c *dispatch.Call) {
				c.Task.Deadline, c.Agent.Endpoint.TimeoutMS = tc.task, tc.timeoutMS
			}), now)
			if !p.Due.Equal(tc.due) || !p.ReplyBy.Equal(tc.replyBy) {
				t.Errorf("got due %v, reply by %v; want %v, %v", p.Due, p.ReplyBy, tc.due, tc.replyBy)
			}
		})
	}
}

// verdict is the part of a Failure that decides the next step.
type verdict struct {
	code                              contract.TaskCode
	mayHaveExecuted, abandoned, retry bool
	health                            dispatch.Health
}

func verdictOf(f *Error) verdict {
	return verdict{f.Code, f.MayHaveExecuted, f.Abandoned, f.Retry, f.Health}
}

func TestPolicy_FailuresFollowTable(t *testing.T) {
	const (
		unavailable = contract.TaskAgentUnavailable
		unknown     = contract.TaskOutcomeUnknown
		badResult   = contract.TaskBadResult
		timeout     = contract.TaskDeadlineExceeded
		cancelled   = contract.TaskWasCancelled
		bad, good   = dispatch.HealthBad, dispatch.HealthGood
	)
	ended := func(sent bool, cause error) func(*Policy) *Error {
		return func(p *Policy) *Error {
			ctx, cancel := context.WithCancelCause(context.Background()) //nolint:usetesting // runs in a synctest bubble, where the outer context must not be used
			if cancel(cause); errors.Is(cause, context.DeadlineExceeded) {
				var stop context.CancelFunc
				ctx, stop = context.WithDeadline(context.Background(), time.Now()) //nolint:usetesting // as above
				defer stop()
			}
			return p.Ended(ctx, sent)
		}
	}
	for _, tc := range []struct {
		name                     string
		fail                     func(*Policy) *Error
		onceWant, idempotentWant verdict // not idempotent, idempotent
	}{
		{"not sent", func(p *Policy) *Error { return p.NotSent("no token", nil) }, verdict{code: unavailable}, verdict{code: unavailable}},
		{
			"unreachable", func(p *Policy) *Error { return p.Unreachable("refused", nil) },
			verdict{unavailable, false, false, true, bad},
			verdict{unavailable, false, false, true, bad},
		},
		{
			"rejected", func(p *Policy) *Error { return p.Rejected("answered 403") },
			verdict{unavailable, false, false, false, good},
			verdict{unavailable, false, false, false, good},
		},
		{
			"busy", func(p *Policy) *Error { return p.Busy("answered 429", 0) },
			verdict{code: unavailable},
			verdict{code: unavailable, retry: true},
		},
		{
			"unanswered", func(p *Policy) *Error { return p.Unanswered("closed the connection", nil) },
			verdict{unknown, true, false, false, bad},
			verdict{unavailable, false, false, true, bad},
		},
		{
			"bad result", func(p *Policy) *Error { return p.BadResult("sent no Result", nil) },
			verdict{badResult, true, false, false, bad},
			verdict{badResult, false, false, false, bad},
		},
		{
			"deadline before the send", ended(false, context.DeadlineExceeded),
			verdict{timeout, false, false, false, bad},
			verdict{timeout, false, false, false, bad},
		},
		{
			"deadline after the send", ended(true, context.DeadlineExceeded),
			verdict{unknown, true, true, false, bad},
			verdict{timeout, false, true, true, bad},
		},
		{"cancelled before the send", ended(false, context.Canceled), verdict{code: cancelled}, verdict{code: cancelled}},
		{
			"cancelled after the send", ended(true, context.Canceled),
			verdict{cancelled, true, true, false, 0},
			verdict{cancelled, false, true, false, 0},
		},
		{"handed over before the send", ended(false, dispatch.ErrHandedOver), verdict{code: unavailable}, verdict{code: unavailable}},
		{
			"handed over after the send", ended(true, dispatch.ErrHandedOver),
			verdict{cancelled, true, false, false, 0},
			verdict{cancelled, false, false, false, 0},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now().Add(-dispatch.DefaultTimeout) // longer ago than the minimum time before a timeout counts
				onceWant, idempotentWant := NewPolicy(t.Context(), newCall(), start), NewPolicy(t.Context(), newCall(idempotent), start)
				diff := cmp.Diff(tc.onceWant, verdictOf(tc.fail(onceWant)), cmp.AllowUnexported(verdict{}))
				if diff += cmp.Diff(tc.idempotentWant, verdictOf(tc.fail(idempotentWant)), cmp.AllowUnexported(verdict{})); diff != "" {
					t.Errorf("not idempotent, idempotent (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestPolicy_TimeoutCountsOnlyAfterFairTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			timeoutMS int
			waited    time.Duration
			want      dispatch.Health
		}{
			{0, time.Second - 1, dispatch.HealthUnknown},
			{0, time.Second, dispatch.HealthBad},
			{2000, 499 * time.Millisecond, dispatch.HealthUnknown},
			{2000, 500 * time.Millisecond, dispatch.HealthBad},
		} {
			p := NewPolicy(t.Context(), newCall(func(c *dispatch.Call) { c.Agent.Endpoint.TimeoutMS = tc.timeoutMS }), time.Now().Add(-tc.waited))
			if got := p.TimeoutHealth(); got != tc.want {
				t.Errorf("timeout_ms %d after %v: got health %d, want %d", tc.timeoutMS, tc.waited, got, tc.want)
			}
		}
	})
}

func TestPolicy_RunCancelsAbandonedAttemptUnlessHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			name string
			last *Error
			want bool
		}{
			{"second attempt unreachable", &Error{Retry: true}, true},
			{"second attempt handed over", &Error{Cause: dispatch.ErrHandedOver}, false},
			{"second attempt succeeds", nil, false},
		} {
			p := NewPolicy(t.Context(), newCall(idempotent), time.Now())
			attempts, got := p.Run(t.Context(), func(_ context.Context, n int) *Error {
				if n == 1 {
					return &Error{Retry: true, Abandoned: true}
				}
				return tc.last
			})
			if attempts != MaxAttempts || got != tc.last || got != nil && got.Abandoned != tc.want {
				t.Errorf("%s: got %d attempts, failure %+v; want %d, abandoned %v", tc.name, attempts, got, MaxAttempts, tc.want)
			}
		}
	})
}

// If an agent is silent in each of several attempts, the error contains how long each was given,
// because an agent that answers within its timeout may need longer than its share.
func TestPolicy_RunStatesTimeOfSilentAttempts(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind func(*dispatch.Call)
		quit time.Duration // of the first attempt, which then fails otherwise; 0 = it is silent
		want string
	}{
		{"idempotent", idempotent, 0, "quality_agent did not answer in time: it had 2.5s and 2.4s for 2 attempts, which share the time of an idempotent agent"},
		{"first attempt failed", idempotent, time.Second, "quality_agent did not answer in time: it had 2.5s and 3.9s for 2 attempts, which share the time of an idempotent agent"},
		{"not idempotent", func(*dispatch.Call) {}, 0, "quality_agent was sent the task and did not answer by the deadline: it may have done it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPolicy(t.Context(), newCall(tc.kind, func(c *dispatch.Call) { c.Agent.Endpoint.TimeoutMS = 5000 }), time.Now())
				ctx, cancel := p.WithDeadline(t.Context())
				defer cancel()
				_, got := p.Run(ctx, func(ctx context.Context, n int) *Error {
					by := p.Limits(time.Now(), n).ReplyBy
					if tc.quit > 0 && n == 1 {
						by = time.Now().Add(tc.quit)
					}
					ctx, cancel := context.WithDeadline(ctx, by)
					defer cancel()
					<-ctx.Done()
					if tc.quit > 0 && n == 1 {
						return p.Unanswered("closed the connection", nil)
					}
					return p.Ended(ctx, true)
				})
				if got == nil || got.Detail != tc.want {
					t.Errorf("got %+v, want the detail %q", got, tc.want)
				}
			})
		})
	}
}

// The second attempt may wait for its share of the time at most; after that a standby is preferred.
func TestPolicy_RunDoesNotWaitLongerThanShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for standbys, want := range map[int]int{0: 2, 1: 2, 2: 1} { // of 30 s
			p := NewPolicy(t.Context(), newCall(idempotent, func(c *dispatch.Call) { c.Standbys = standbys }), time.Now())
			attempts, _ := p.Run(t.Context(), func(context.Context, int) *Error {
				return p.Busy("answered 429", 15*time.Second)
			})
			if attempts != want {
				t.Errorf("%d standbys: got %d attempts, want %d", standbys, attempts, want)
			}
		}
	})
}
