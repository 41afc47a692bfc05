package store_test

import (
	"errors"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// After a disconnect, the store is not ready until it has created the streams in memory again,
// because a restarted server does not have them.
func TestStatus_IsNotReadyUntilMemoryStreamsAreRecreated(t *testing.T) {
	s := teststore.OpenShared(t, teststore.Serve(t, t.TempDir(), -1), "a")
	s.CountDisconnect()
	if got := s.Status(); got.Ready || !errors.Is(got.Err, store.ErrUnavailable) {
		t.Errorf("after a disconnect: got %+v, want it not ready", got)
	}
	s.SignalReconnect()
	testkit.Eventually(t, "the store is ready", func() bool { return s.Status().Ready })
}
