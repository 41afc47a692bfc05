package router_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/router"
)

// Records are found by the time in the id of their request, and stored with that of the clock.
func TestNewID_FollowsClockThatWasSetBack(t *testing.T) {
	router.NewID()                        // with the clock of the system
	synctest.Test(t, func(t *testing.T) { // in which it is the year 2000
		seen := map[string]bool{}
		for range 100 {
			id := router.NewID()
			if got, want := history.TimeOfID(id), time.Now(); !got.Equal(want) {
				t.Fatalf("got an id of %s, want %s", got.UTC(), want.UTC())
			}
			if seen[id] {
				t.Fatalf("got the id %s twice", id)
			}
			seen[id] = true
		}
	})
}
