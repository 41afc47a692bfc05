// Package teststore opens embedded stores for tests. Tests use the real engine,
// because it starts within milliseconds.
//
//	s := teststore.Open(t)
//	b, err := s.Bucket(t.Context(), store.BucketConfig{Name: "REQUESTS"})
package teststore

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/store"
)

// Keys returns a ring with one key, always the same.
func Keys() *contentkey.Keyring {
	ring, err := contentkey.Parse("dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk=", "the tests")
	if err != nil {
		panic(err)
	}
	return ring
}

// Open opens an embedded store in a temporary directory, and closes it at the end of the test. It
// does not sync every write, because tests do not simulate power failures. A test that measures
// time or kills the process must set SyncEvery to 0.
func Open(t testing.TB, change ...func(*store.Config)) *store.Store {
	t.Helper()
	cfg := store.Config{Dir: t.TempDir(), Owner: "test", SyncEvery: time.Minute}
	for _, c := range change {
		c(&cfg)
	}
	// The test's context ends before the cleanup functions run.
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
