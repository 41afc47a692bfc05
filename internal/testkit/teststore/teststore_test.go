package teststore_test

import (
	"testing"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

func TestOpen_ClosesWithItsTest(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"first", "second"} { // the second store needs the lock of the first one
		t.Run(name, func(t *testing.T) {
			s := teststore.Open(t, func(c *store.Config) { c.Dir = dir })
			if got := s.Status(); !got.Ready {
				t.Errorf("got %+v, want it ready", got)
			}
		})
	}
}
