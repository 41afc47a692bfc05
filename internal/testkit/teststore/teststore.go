// Package teststore opens real stores for tests. There is no second
// implementation of a store to test against: the engine starts in milliseconds.
//
//	s := teststore.Open(t)
//	b, err := s.Bucket(t.Context(), store.BucketConfig{Name: "REQUESTS"})
package teststore

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// Open opens an embedded store in a folder that goes with the test, and closes
// it when the test ends. It writes without waiting for the disk, since no test
// loses power; a test that measures, or kills, sets SyncEvery to 0.
func Open(t testing.TB, change ...func(*store.Config)) *store.Store {
	t.Helper()
	cfg := store.Config{Dir: t.TempDir(), Owner: "test", SyncEvery: time.Minute}
	for _, c := range change {
		c(&cfg)
	}
	// Not the test's context: that ends before the cleanups run.
	s, err := store.Open(context.WithoutCancel(t.Context()), cfg)
	if err != nil {
		t.Fatalf("open the test's store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the test's store: %v", err)
		}
	})
	return s
}
