package sharedkeys

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func containsSecret(secrets [][]byte, secret []byte) bool {
	return slices.ContainsFunc(secrets, func(s []byte) bool { return bytes.Equal(s, secret) })
}

// Replicas read changes within a minute. A token that any replica issued must be accepted by
// all others until it expires, and by none after a revocation.
func TestSecrets_AreAcceptedWhileTokensLive(t *testing.T) {
	const delay = time.Minute
	type token struct {
		secret  []byte
		issued  time.Time
		expires time.Time
	}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, 0)
		var stored, before secretsRecord // the store now and one minute ago
		stored.update(now, time.Time{})
		before = stored
		changed, revoked := now, time.Time{}
		var tokens []token
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour, 9 * time.Hour, 30 * time.Hour}).Draw(t, "pause"))
			if now.Sub(changed) > delay {
				before = stored
			}
			if rapid.IntRange(0, 40).Draw(t, "revoke") == 0 {
				revoked, tokens = now, nil
			}
			if next := stored; next.update(now, revoked) {
				if now.Equal(revoked) {
					before = next // no delay for a revocation: it invalidates the tokens in any case
				} else {
					before = stored
				}
				stored, changed = next, now
			}
			if again := stored; again.update(now, revoked) {
				t.Fatalf("the record changed again by a second replica, want it unchanged")
			}
			for _, r := range []*secretsRecord{&before, &stored} {
				use := r.inUse(now)
				life := rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 24 * time.Hour}).Draw(t, "life")
				tokens = append(tokens, token{use[0], now, now.Add(life)})
			}
			for _, tk := range tokens {
				if !now.Before(tk.expires) {
					continue
				}
				if !containsSecret(stored.inUse(now), tk.secret) || !containsSecret(before.inUse(now), tk.secret) {
					t.Fatalf("at %s: a token of %s until %s is not accepted", now, tk.issued, tk.expires)
				}
			}
			for _, s := range stored.Secrets {
				if s.Created.Before(revoked) {
					t.Fatalf("a secret of %s is accepted after the revocation at %s", s.Created, revoked)
				}
			}
			if len(stored.Secrets) > 3 {
				t.Fatalf("got %d secrets, want them to end", len(stored.Secrets))
			}
		}
	})
}

func TestSecrets_EndWithoutSuccessor(t *testing.T) {
	now := time.Unix(1e9, 0)
	var old secretsRecord
	old.update(now, time.Time{})
	replayed := old
	now = now.Add(secretLife)
	if !replayed.update(now, time.Time{}) || len(replayed.Secrets) != 1 || containsSecret(replayed.inUse(now), old.Secrets[0].Secret) {
		t.Errorf("got %d secrets with the old one after %s, want a new one only", len(replayed.Secrets), secretLife)
	}
	if replayed.Changes != 2 {
		t.Errorf("got %d changes, want 2", replayed.Changes)
	}
}
