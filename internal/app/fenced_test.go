package app

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A router whose audit log has another writer accepts no further requests, and ends with an error.
func TestServer_EndsIfAuditLogHasAnotherWriter(t *testing.T) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	s := startOnce(ctx, t, "clients:\n"+entry("counter", "count_words", "text", refusing), func(c *config.Config) { c.DataDir = t.TempDir() })
	log, err := s.core.persistence.store.Log(t.Context(), audit.LogConfig(shareAudit))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "audit."+audit.DefaultWriter, []byte("of another process"), store.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if status, body := s.post(t.Context(), `{"content":{"prompt":"count words of this text"}}`); status != http.StatusServiceUnavailable {
		t.Errorf("got %d %s, want 503", status, body)
	}
	testkit.WaitClosed(t, s.core.persistence.store.OwnershipLost())
	if got := s.core.readiness(); got.Status != rest.ReadinessDegraded || got.Store.Ready {
		t.Errorf("got readiness %+v, want degraded", got)
	}
	if status, body := s.post(t.Context(), `{"content":{"prompt":"count words of this text"},"options":{"mode":"async"}}`); status == http.StatusAccepted {
		t.Errorf("got %d %s, want the asynchronous request rejected", status, body)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	if err := testkit.Receive(t, ended); !errors.Is(err, store.ErrLocked) {
		t.Errorf("got the server ended with %v, want %v", err, store.ErrLocked)
	}
}
