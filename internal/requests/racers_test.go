package requests

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/internal/quota"
)

func TestUpdate_OneOfConcurrentCallersSucceeds(t *testing.T) {
	const racers = 64
	tests := []struct {
		name string
		from State
		do   func(r *Record, i int) error
		lost error
	}{
		{"start", StatePlanned, func(r *Record, i int) error { return r.Start(fmt.Sprint("router-", i), 0) }, ErrTransition},
		{"send", StateRunning, func(r *Record, i int) error {
			return r.Send(Task{ID: fmt.Sprint("t2-", i), AgentID: "costs", Part: 1, SentAt: now})
		}, ErrTransition},
		{"end, equal", StateRunning, func(r *Record, _ int) error {
			return r.End("cancelled", answer("cancelled"), now)
		}, ErrEnded},
		{"deliver", StateRunning, func(r *Record, i int) error {
			_, err := r.Deliver("t1", "quality", result(fmt.Sprint(i)))
			return err
		}, ErrDifferentResult},
	}
	b := NewStore(openBucket(t), quota.Unlimited())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, tt.from)
			must(t, b.Create(t.Context(), r))
			errs := make([]error, racers)
			var all sync.WaitGroup
			for i := range racers {
				all.Go(func() {
					_, errs[i] = b.Update(t.Context(), r.ID, func(r *Record) error { return tt.do(r, i) })
				})
			}
			all.Wait()
			won := 0
			for i, err := range errs {
				switch {
				case err == nil:
					won++
				case !errors.Is(err, tt.lost):
					t.Errorf("caller %d: got error %v, want %v", i, err, tt.lost)
				}
			}
			if won != 1 {
				t.Errorf("got %d of %d successful, want 1", won, racers)
			}
			must(t, b.Delete(t.Context(), r.ID))
		})
	}
}

// If the same result is delivered 64 times concurrently, it is new once.
func TestUpdate_SameResultIsFreshOnce(t *testing.T) {
	b := NewStore(openBucket(t), quota.Unlimited())
	must(t, b.Create(t.Context(), inState(t, StateRunning)))
	fresh := make([]bool, 64)
	var all sync.WaitGroup
	for i := range fresh {
		all.Go(func() {
			_, err := b.Update(t.Context(), testID, func(r *Record) (err error) {
				fresh[i], err = r.Deliver("t1", "quality", result("x"))
				return err
			})
			if err != nil {
				t.Errorf("caller %d: got error %v, want none", i, err)
			}
		})
	}
	all.Wait()
	n := 0
	for _, f := range fresh {
		if f {
			n++
		}
	}
	if n != 1 {
		t.Errorf("got it new %d times, want once", n)
	}
}
