package httptarget

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
)

func TestTimesOf(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		name              string
		left              time.Duration
		ownTries, others  int
		connected, answer time.Duration // for an agent that is not idempotent
		share             time.Duration // the answer of one that is
	}{
		{"the last try of the last agent", 2 * time.Second, 1, 0, 2 * time.Second, 2 * time.Second, 2 * time.Second},
		{"the first of two tries", 2 * time.Second, 2, 0, time.Second, 2 * time.Second, time.Second},
		{"with one agent in reserve", 3 * time.Second, 2, 1, time.Second, 3 * time.Second, time.Second},
		{"connecting takes 3 s at most", time.Minute, 2, 1, 3 * time.Second, time.Minute, 20 * time.Second},
		{"hardly any time", 10 * time.Millisecond, 2, 3, 2 * time.Millisecond, 10 * time.Millisecond, 2 * time.Millisecond},
		{"no time", 0, 2, 0, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			end := now.Add(tc.left)
			once := timesOf(now, end, tc.ownTries, tc.others, false)
			if got, want := once, (times{now.Add(tc.connected), now.Add(tc.answer)}); got != want {
				t.Errorf("not idempotent: %v, want %v", got, want)
			}
			twice := timesOf(now, end, tc.ownTries, tc.others, true)
			if got, want := twice, (times{now.Add(tc.connected), now.Add(tc.share)}); got != want {
				t.Errorf("idempotent: %v, want %v", got, want)
			}
		})
	}
}

// Whatever the tries of an agent use of their shares, as much is left for those
// that may take over as is their part of the whole, and nothing lasts beyond
// the end.
func TestSharesLeaveTimeForOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		left := time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "left"))
		end := now.Add(left)
		others := rapid.IntRange(0, 19).Draw(t, "others")
		for own := maxTries; own > 0; own-- {
			by := timesOf(now, end, own, others, true)
			if by.answer.After(end) || by.connected.After(by.answer) || by.connected.Sub(now) > maxConnect || by.answer.Before(now) {
				t.Fatalf("times %v at %v, end %v", by, now, end)
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(by.answer.Sub(now))).Draw(t, "used")))
		}
		if got, want := end.Sub(now), left*time.Duration(others)/time.Duration(maxTries+others); got < want {
			t.Fatalf("%v of %v is left for %d others, want %v", got, left, others, want)
		}
	})
}

func TestClean(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain":                    {"must be one of", "must be one of"},
		"other scripts":            {"não é válido: 状態", "não é válido: 状態"},
		"a terminal's words":       {"a\x1b[2Jb\rc\nd\te\x7f\u009b", "a[2Jbcde"},
		"writing direction":        {"a\u202eb\u2066c\u200fd", "abcd"},
		"invisible":                {"a\u200bb\ufeffc\u2028d", "abcd"},
		"long":                     {strings.Repeat("x", 500), strings.Repeat("x", 160) + "…"},
		"long, cut in a character": {strings.Repeat("é", 100) + "é", strings.Repeat("é", 80) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clean(tc.text)); diff != "" {
				t.Errorf("clean (-want +got):\n%s", diff)
			}
		})
	}
	if got := clean("x" + strings.Repeat("é", 100)); got != "x"+strings.Repeat("é", 79)+"…" {
		t.Errorf("clean cut a character in two: %q", got)
	}
}

func TestEndOf(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := now.Add
	for _, tc := range []struct {
		name      string
		task      time.Time
		timeoutMS int
		due, end  time.Time
	}{
		{"no limit", time.Time{}, 0, at(dispatch.DefaultTimeout), at(dispatch.DefaultTimeout)},
		{"the agent's", time.Time{}, 1500, at(dispatch.DefaultTimeout), at(1500 * time.Millisecond)},
		{"the task's", at(time.Second), 0, at(time.Second), at(time.Second)},
		{"the agent's before the task's", at(10 * time.Second), 1500, at(10 * time.Second), at(1500 * time.Millisecond)},
		{"the task's before the agent's", at(time.Second), 1500, at(time.Second), at(time.Second)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dispatch.Call{Agent: &contract.RegistryEntry{}}
			c.Task.Deadline, c.Agent.Endpoint.TimeoutMS = tc.task, tc.timeoutMS
			due, end := endOf(t.Context(), c, now)
			if !due.Equal(tc.due) || !end.Equal(tc.end) {
				t.Errorf("due %v, end %v; want %v, %v", due, end, tc.due, tc.end)
			}
		})
	}
}
