package history_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// macSigner is a cheap audit.Signer.
type macSigner struct{}

func (macSigner) KeyID() string { return "test" }

func (macSigner) Sign(purpose string, data []byte) (keyID string, sig []byte) {
	h := hmac.New(sha256.New, []byte(purpose))
	h.Write(data)
	return "test", h.Sum(nil)
}

func (s macSigner) Verify(purpose, keyID string, data, sig []byte) bool {
	_, want := s.Sign(purpose, data)
	return keyID == "test" && hmac.Equal(sig, want)
}

func TestJournal_CloseReplica(t *testing.T) {
	s := teststore.OpenShared(t, teststore.Serve(t, t.TempDir(), -1), "test")
	stream, err := s.Log(t.Context(), audit.LogConfig(0))
	if err != nil {
		t.Fatal(err)
	}
	heads, err := s.Bucket(t.Context(), audit.HeadsConfig())
	if err != nil {
		t.Fatal(err)
	}
	logs, journals := map[string]*audit.Log{}, map[string]*history.Journal{}
	for _, name := range []string{"a", "b"} {
		log, err := audit.Open(t.Context(), audit.Config{
			Log: stream, Heads: heads, Members: macSigner{}.Verify, Writer: name, Keys: teststore.Keys(),
			Signer: macSigner{}, HeadFile: filepath.Join(t.TempDir(), name),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close(context.WithoutCancel(t.Context())) })
		logs[name], journals[name] = log, history.NewJournal(log, name, false, slog.New(slog.DiscardHandler), time.Now)
	}
	interrupted, stored := newID(t), newID(t)
	for _, id := range []string{interrupted, stored} {
		req := &contract.Request{RequestID: id, TraceID: "trace"}
		d := &contract.Decision{DecisionID: "d", Chosen: []string{"payer"}}
		if err := journals["a"].RecordDecision(t.Context(), history.Subject{Caller: alice, Prompt: "pay"}, req, d, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	isStored := func(_ context.Context, id string) (bool, error) { return id == stored, nil }
	for _, want := range []int{1, 0} {
		if got, err := journals["b"].CloseReplica(t.Context(), logs["b"], "a", isStored); got != want || err != nil {
			t.Errorf("closed %d requests, got error %v, want %d and no error", got, err, want)
		}
	}
	found, err := logs["b"].Find(t.Context(), interrupted)
	if err != nil || found.Outcome == nil {
		t.Fatalf("got %+v and error %v, want an outcome", found, err)
	}
	want := audit.Record{Kind: audit.KindOutcome, RequestID: interrupted, Tenant: alice.Tenant, Subject: alice.Subject, Status: contract.StatusFailed}
	got := audit.Record{Kind: found.Outcome.Kind, RequestID: found.Outcome.RequestID, Tenant: found.Outcome.Tenant, Subject: found.Outcome.Subject, Status: found.Outcome.Status}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if found, err := logs["b"].Find(t.Context(), stored); err != nil || found.Outcome != nil {
		t.Errorf("a request with a record: got %+v and error %v, want no outcome", found, err)
	}
	// The replica was slow, not stopped.
	err = journals["a"].RestoreResponse(t.Context(), history.Subject{Caller: alice}, &contract.Response{RequestID: interrupted, Status: contract.StatusCompleted})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("got error %v, want %v", err, store.ErrConflict)
	}
}
