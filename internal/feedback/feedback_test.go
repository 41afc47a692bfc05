package feedback_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

const requestID = "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90"

var (
	alice = &contract.Caller{Subject: "alice", Tenant: "north"}
	at    = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
)

func entryOf(subject, issuer string, verdict contract.Verdict, comment string) feedback.Entry {
	return feedback.Entry{Issuer: issuer, Feedback: contract.Feedback{
		Verdict: verdict, ExpectedAgents: []string{}, Comment: comment, Tenant: "north", Subject: subject, At: at,
	}}
}

// newStore returns a store in a bucket of a real store, with at most this many bytes.
func newStore(t *testing.T, limit int64) *feedback.Store {
	t.Helper()
	shares := quota.New(quota.Config{Limit: limit, Removable: true})
	bucket, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "FEEDBACK", Keys: teststore.Keys(), OnWrite: shares.Written})
	if err != nil {
		t.Fatal(err)
	}
	return feedback.NewStore(bucket, shares, slog.New(slog.DiscardHandler))
}

func checkEntries(t *testing.T, s *feedback.Store, want ...feedback.Entry) {
	t.Helper()
	got, err := s.Of(t.Context(), requestID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("feedback (-want +got):\n%s", diff)
	}
}

func put(t *testing.T, s *feedback.Store, id string, e feedback.Entry) {
	t.Helper()
	if _, err := s.Put(t.Context(), id, alice, e); err != nil {
		t.Fatal(err)
	}
}

func TestStore_ReplacesFeedbackOfSamePrincipal(t *testing.T) {
	s := newStore(t, 0)
	checkEntries(t, s)
	first, second := entryOf("alice", "", contract.VerdictCorrect, "fine"), entryOf("alice", "", contract.VerdictMisroute, "not fine")
	other, vouched := entryOf("bob", "", contract.VerdictCorrect, ""), entryOf("alice", "https://id.example", contract.VerdictCorrect, "")
	put(t, s, requestID, first)
	put(t, s, requestID, other)
	put(t, s, requestID, vouched)
	checkEntries(t, s, first, other, vouched)
	if replaced, err := s.Put(t.Context(), requestID, alice, second); err != nil || replaced == nil || replaced.Verdict != contract.VerdictCorrect {
		t.Errorf("got %+v and error %v replaced, want the first verdict", replaced, err)
	}
	checkEntries(t, s, second, other, vouched)

	all, err := s.All(t.Context())
	if diff := cmp.Diff(map[string][]feedback.Entry{requestID: {second, other, vouched}}, all); err != nil || diff != "" {
		t.Errorf("error %v, all (-want +got):\n%s", err, diff)
	}
	if err := s.Erase(t.Context(), requestID); err != nil {
		t.Fatal(err)
	}
	checkEntries(t, s)
}

func TestStore_KeepsConcurrentFeedback(t *testing.T) {
	s := newStore(t, 0)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if _, err := s.Put(t.Context(), requestID, alice, entryOf(fmt.Sprint("operator", n), "", contract.VerdictCorrect, "")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := s.Of(t.Context(), requestID); err != nil || len(got) != 8 {
		t.Errorf("got %d entries, error %v, want 8", len(got), err)
	}
}

func TestStore_BoundsPrincipalsOfRequest(t *testing.T) {
	s := newStore(t, 0)
	for n := range 20 {
		put(t, s, requestID, entryOf(fmt.Sprint("operator", n), "", contract.VerdictCorrect, ""))
	}
	_, err := s.Put(t.Context(), requestID, alice, entryOf("one more", "", contract.VerdictCorrect, ""))
	if e, ok := errors.AsType[*contract.Error](err); !ok || e.Code != contract.CodeConflict {
		t.Errorf("got error %v, want %s", err, contract.CodeConflict)
	}
	put(t, s, requestID, entryOf("operator7", "", contract.VerdictMisroute, ""))
}

func TestStore_RemovesOldestFeedbackToMakeRoom(t *testing.T) {
	const limit = 20 << 10
	s := newStore(t, limit)
	for n := range 40 {
		put(t, s, fmt.Sprintf("request-%02d", n), entryOf("alice", "", contract.VerdictCorrect, strings.Repeat("x", 1000)))
	}
	all, err := s.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 || len(all) > limit/1000 {
		t.Errorf("got %d values of 1000 bytes and more, want at most %d", len(all), limit/1000)
	}
	if all["request-39"] == nil || all["request-00"] != nil {
		t.Errorf("got the oldest value kept or the newest removed: %d values", len(all))
	}
}

// One damaged value does not hide the feedback on other requests.
func TestStore_AllLeavesOutDamagedValues(t *testing.T) {
	bucket, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "FEEDBACK", Keys: teststore.Keys()})
	if err != nil {
		t.Fatal(err)
	}
	var log testkit.LogBuffer
	s := feedback.NewStore(bucket, quota.Unlimited(), log.Logger())
	put(t, s, requestID, entryOf("alice", "", contract.VerdictCorrect, ""))
	if _, err := bucket.Create(t.Context(), "damaged", []byte("{")); err != nil {
		t.Fatal(err)
	}
	all, err := s.All(t.Context())
	if err != nil || len(all) != 1 || len(all[requestID]) != 1 {
		t.Errorf("got %v, %v, want the feedback on one request", all, err)
	}
	if !strings.Contains(log.String(), "damaged") {
		t.Errorf("got the log %q, want the damaged value", log.String())
	}
}
