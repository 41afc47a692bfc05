package store

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A store is not ready from the end of a connection until the streams in memory, which the
// server may have lost, were created again.
func TestStatus_IsNotReadyBeforeMemoryStreamsAreThere(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), URL: srv.ClientURL(), MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.engine.disconnects.Add(1)
	if got := s.Status(); got.Ready || !errors.Is(got.Err, ErrUnavailable) {
		t.Errorf("after a disconnect: got %+v, want it not ready", got)
	}
	s.engine.reconnected <- struct{}{}
	for deadline := time.Now().Add(10 * time.Second); !s.Status().Ready; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %+v, want it ready", s.Status())
		}
	}
}
