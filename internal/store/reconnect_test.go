package store_test

import (
	"errors"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// A store is not ready from the end of a connection until the streams in memory, which the
// server may have lost, were created again.
func TestStatus_IsNotReadyBeforeMemoryStreamsAreThere(t *testing.T) {
	s := teststore.OpenShared(t, teststore.Serve(t, t.TempDir(), -1), "a")
	s.CountDisconnect()
	if got := s.Status(); got.Ready || !errors.Is(got.Err, store.ErrUnavailable) {
		t.Errorf("after a disconnect: got %+v, want it not ready", got)
	}
	s.SignalReconnect()
	testkit.Eventually(t, "the store is ready", func() bool { return s.Status().Ready })
}
