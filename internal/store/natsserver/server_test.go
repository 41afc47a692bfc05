package natsserver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store/natsserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

func newServer(t *testing.T, dir string, log *testkit.LogBuffer) *natsserver.Server {
	t.Helper()
	srv, err := natsserver.New(natsserver.Config{
		Dir: dir, MaxBytes: 64 << 20, MaxMemory: 1 << 20, SyncEvery: time.Minute, StartTimeout: testkit.Patience,
		Logger: log.Logger(), Failures: make(chan string, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

func TestServer_AcceptsInProcessConnections(t *testing.T) {
	var log testkit.LogBuffer
	srv := newServer(t, t.TempDir(), &log)
	if err := srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	conn, err := srv.InProcessConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if !srv.IsHealthy() || srv.UsedBytes() != 0 {
		t.Errorf("got healthy %v and %d bytes used, want an empty healthy server", srv.IsHealthy(), srv.UsedBytes())
	}
	srv.Stop()
	if srv.IsHealthy() {
		t.Error("after Stop: IsHealthy = true, want false")
	}
	for _, unwanted := range []string{`"level":"WARN"`, `"level":"ERROR"`, "Listening"} {
		if strings.Contains(log.String(), unwanted) {
			t.Errorf("got a log with %s:\n%s", unwanted, log.String())
		}
	}
}

func TestStart_ErrorContainsLastMessage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log testkit.LogBuffer
	srv := newServer(t, dir, &log)
	err := srv.Start(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "the engine does not start: ") || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("got error %v, want one with the cause", err)
	}
}

func TestStart_EndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var log testkit.LogBuffer
	srv := newServer(t, t.TempDir(), &log)
	if err := srv.Start(ctx); err == nil || srv.IsHealthy() {
		t.Errorf("got error %v and healthy %v, want a stopped server", err, srv.IsHealthy())
	}
}
