package asyncrun

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/caprouter/caprouter/internal/run"
)

func TestRequestWork_IsDoneOnceMoreForMessagesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run.New(t.Context())
		work := newRequestWork(g, 10)
		var calls atomic.Int32
		proceed := make(chan struct{})
		start := func(kind messageKind, id string) bool {
			return work.start(workKey{kind, id}, func(context.Context) {
				calls.Add(1)
				<-proceed
			})
		}
		check := func(when string, want int32) {
			t.Helper()
			synctest.Wait()
			if got := calls.Load(); got != want {
				t.Errorf("%s: got %d calls, want %d", when, got, want)
			}
		}
		for range 5 {
			start(recordNeeded, "a")
		}
		check("several messages", 1)
		start(recordChanged, "a")
		start(recordNeeded, "b")
		check("another kind and another request", 3)
		close(proceed)
		check("after the first call", 4)
		start(recordNeeded, "a")
		check("a message afterwards", 5)
		g.Stop(nil)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		if len(work.running) != 0 {
			t.Errorf("got %v at the end, want nothing running", work.running)
		}
	})
}

func TestRequestWork_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run.New(t.Context())
		work := newRequestWork(g, 2)
		proceed := make(chan struct{})
		start := func(id string) bool {
			return work.start(workKey{recordNeeded, id}, func(context.Context) { <-proceed })
		}
		for _, tt := range []struct {
			id   string
			want bool
		}{{"a", true}, {"b", true}, {"c", false}, {"a", true}} {
			if got := start(tt.id); got != tt.want {
				t.Errorf("request %s: got accepted %t, want %t", tt.id, got, tt.want)
			}
		}
		close(proceed)
		synctest.Wait()
		if !start("c") {
			t.Error("got a message rejected when nothing is running, want it accepted")
		}
		g.Stop(nil)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}
