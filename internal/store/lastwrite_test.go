package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// The process compares an expected sequence if it knows the newest message of the subject.
// Otherwise, the engine compares it.
func TestLog_ComparesExpectedSequences(t *testing.T) {
	t.Parallel()
	s := teststore.Open(t)
	cfg := store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}}
	l, other := openLog(t, s, cfg), openLog(t, s, cfg)
	last := uint64(0)
	for _, step := range []struct {
		name     string
		before   func()
		conflict bool
		byEngine bool
	}{
		{name: "first", before: func() {}, byEngine: true},
		{name: "second", before: func() {}},
		{name: "after a write to another subject", before: func() { appendText(t, other, "log.b", "x") }},
		{name: "after a write to the subject", before: func() { appendText(t, other, "log.a", "x") }, conflict: true},
		{name: "after the conflict", before: func() { last = must[store.Message](t)(l.Last(t.Context(), "log.a")).Seq }, byEngine: true},
		{name: "after a purge", before: func() {
			if err := other.Purge(t.Context(), "log.a"); err != nil {
				t.Fatal(err)
			}
		}, conflict: true},
		{name: "after the purge", before: func() { last = 0 }, byEngine: true},
		{name: "known again", before: func() {}},
		{name: "after a restart of the engine", before: func() { s.FailEngine("test") }, byEngine: true},
		{name: "after the message was erased", before: func() {
			if err := l.Delete(t.Context(), last); err != nil {
				t.Fatal(err)
			}
		}, conflict: true},
	} {
		step.before()
		expect := last
		seq, err := l.Append(t.Context(), "log.a", []byte(step.name), store.AppendOptions{ExpectLast: &expect})
		if step.conflict {
			wantErr(t, step.name, err, store.ErrConflict)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		last = seq
		if got := must[store.Message](t)(l.Get(t.Context(), seq)).ComparedByEngine(); got != step.byEngine {
			t.Errorf("%s: got compared by the engine %t, want %t", step.name, got, step.byEngine)
		}
	}
}

// Of concurrent writers that expect the same sequence, at most one succeeds. Other writers expect
// no sequence or change other messages.
func TestLog_AcceptsOneOfConcurrentExpectations(t *testing.T) {
	for _, others := range []bool{false, true} {
		t.Run(fmt.Sprint("others ", others), func(t *testing.T) {
			l := openLog(t, teststore.Open(t), store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}})
			const writers, rounds = 4, 30
			var wg sync.WaitGroup
			var mu sync.Mutex
			after := map[uint64]uint64{} // accepted writes by the sequence that they expected
			for w := range writers {
				wg.Go(func() {
					for range rounds {
						if w == 0 {
							if _, err := l.Append(t.Context(), "log.a", nil, store.AppendOptions{}); err != nil {
								t.Error(err)
							}
							continue
						}
						var expect uint64
						if m, err := l.Last(t.Context(), "log.a"); err == nil {
							expect = m.Seq
						}
						seq, err := l.Append(t.Context(), "log.a", nil, store.AppendOptions{ExpectLast: &expect})
						if err != nil {
							continue
						}
						mu.Lock()
						if other, ok := after[expect]; ok || !others && seq != expect+1 {
							t.Errorf("got message %d accepted after %d, and also message %d; want one", seq, expect, other)
						}
						after[expect] = seq
						mu.Unlock()
					}
				})
			}
			if others {
				wg.Go(func() {
					for range rounds {
						changeOthers(t, l)
					}
				})
			}
			wg.Wait()
		})
	}
}

// changeOthers writes and removes messages, but not the newest one of log.a.
func changeOthers(t *testing.T, l *store.Log) {
	if _, err := l.Append(t.Context(), "log.b", nil, store.AppendOptions{}); err != nil {
		t.Error(err)
	}
	if err := l.Purge(t.Context(), "log.b"); err != nil {
		t.Error(err)
	}
	if m, err := l.Last(t.Context(), "log.a"); err == nil {
		if err := l.Trim(t.Context(), m.Seq); err != nil {
			t.Error(err)
		}
	}
}
