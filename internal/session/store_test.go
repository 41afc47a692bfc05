package session_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

var silent = slog.New(slog.DiscardHandler)

var (
	alice = &contract.Caller{Subject: "alice", Tenant: "north"}
	bob   = &contract.Caller{Subject: "bob", Tenant: "north"}
)

func TestKey_DependsOnCaller(t *testing.T) {
	if got := session.Key(alice, ""); got != "" {
		t.Errorf("got key %q without a session id, want none", got)
	}
	vouched := *alice
	vouched.Issuer = "https://id.example"
	keys := map[string]bool{}
	for _, caller := range []*contract.Caller{alice, bob, &vouched} {
		keys[session.Key(caller, "s")] = true
	}
	if len(keys) != 3 {
		t.Errorf("got %d keys of one session id for 3 callers, want 3", len(keys))
	}
	// sha256 of "5:north5:alice1:s": sessions of earlier versions stay readable.
	if got, want := session.Key(alice, "s"), "session."+store.HashKey("north", "alice", "s"); got != want {
		t.Errorf("got key %s, want %s", got, want)
	}
}

func TestStore_AddsTurnsOfConcurrentRequests(t *testing.T) {
	sessions, key := session.NewStore(&teststore.MemoryBucket{}, quota.Unlimited(), silent), session.Key(alice, "s")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := sessions.Update(t.Context(), &contract.Caller{Subject: "ana"}, key, func(s session.Session) session.Session {
				return s.After(&session.Ended{RequestID: "r", Prompt: "hi", Response: &contract.Response{}})
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	loaded := sessions.Load(t.Context(), key)
	if got := len(loaded.History()); got != 4 {
		t.Errorf("got %d turns, want 4", got)
	}
	if _, err := sessions.EraseTurns(t.Context(), key, "r"); err != nil {
		t.Fatal(err)
	}
	if loaded = sessions.Load(t.Context(), key); len(loaded.Turns) != 0 {
		t.Errorf("got %d turns after erasing, want none", len(loaded.Turns))
	}
}

func TestStore_LoadsEmptySessionOnError(t *testing.T) {
	b := &teststore.MemoryBucket{}
	sessions := session.NewStore(b, quota.Unlimited(), silent)
	if _, err := b.Create(t.Context(), "k", []byte("not JSON")); err != nil {
		t.Fatal(err)
	}
	if s := sessions.Load(t.Context(), "k"); len(s.Turns) != 0 || s.Classification != nil {
		t.Errorf("got %+v from a value that is not JSON, want an empty session", s)
	}
	b.Err = errors.New("broken")
	if s := sessions.Load(t.Context(), "k"); len(s.Turns) != 0 {
		t.Errorf("got %+v from a broken store, want an empty session", s)
	}
}

func TestQuestions_AcceptsOptionOfSameCaller(t *testing.T) {
	b := &teststore.MemoryBucket{}
	questions := session.NewQuestions(b, quota.Unlimited(), silent)
	questions.Store(t.Context(), "r", alice, []contract.ClarificationOption{{ID: "1", Intent: "pay"}, {ID: "2", Intent: "sing", Domains: []string{"opera"}}})
	pinned, err := questions.Choose(t.Context(), alice, &contract.ClarificationChoice{RequestID: "r", OptionID: "2"})
	if err != nil || pinned.Reason != session.ReasonClarified || pinned.Classification.Intent != "sing" || pinned.Classification.Confidence != 1 {
		t.Fatalf("got %+v, %v, want the chosen reading with confidence 1", pinned, err)
	}
	check := func(name string, caller *contract.Caller, requestID, optionID, pointer, text string) {
		t.Helper()
		_, err := questions.Choose(t.Context(), caller, &contract.ClarificationChoice{RequestID: requestID, OptionID: optionID})
		e, ok := errors.AsType[*contract.Error](err)
		if !ok || e.Code != contract.CodeInvalidRequest || len(e.Details) != 1 || e.Details[0].Pointer != pointer || !strings.Contains(e.Details[0].Detail, text) {
			t.Errorf("%s: got %+v, want invalid_request at %s with %q", name, err, pointer, text)
		}
	}
	check("another caller", bob, "r", "2", "/clarification/request_id", "expired")
	check("unknown request", alice, "other", "2", "/clarification/request_id", "expired")
	check("unknown option", alice, "r", "3", "/clarification/option_id", "1, 2")
	if err := questions.Erase(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	check("erased", alice, "r", "2", "/clarification/request_id", "expired")
	b.Err = errors.New("broken")
	if _, err := questions.Choose(t.Context(), alice, &contract.ClarificationChoice{RequestID: "r"}); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v from a broken store, want an error", err)
	}
}

func TestNoBucket_DiscardsSessions(t *testing.T) {
	sessions := session.NewStore(store.NoBucket{}, quota.Unlimited(), silent)
	if err := sessions.Update(t.Context(), &contract.Caller{Subject: "ana"}, "k", func(s session.Session) session.Session { return session.FromHistory([]contract.Turn{{Content: "hi"}}) }); err != nil {
		t.Fatal(err)
	}
	if s := sessions.Load(t.Context(), "k"); len(s.Turns) != 0 {
		t.Errorf("got %+v, want an empty session", s)
	}
}
