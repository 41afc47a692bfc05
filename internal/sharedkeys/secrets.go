package sharedkeys

import (
	"crypto/rand"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
)

const (
	// secretOverlap is how long a new secret is published before it signs.
	secretOverlap = 2 * time.Minute
	// secretInterval is the age at which a secret is replaced.
	secretInterval = 7 * 24 * time.Hour
	// tokenLife is how long a secret is accepted after it signed for the last time:
	// the maximum lifetime of a callback token, and clock skew.
	tokenLife = contract.MaxAsyncTimeoutMS*time.Millisecond + clockLeeway
	// secretLife is how long a secret is accepted at most. A row that is older than that
	// was replayed, or all replicas were stopped. Replicas that do not answer for a day
	// cannot replace a secret.
	secretLife = secretInterval + 24*time.Hour + secretOverlap + tokenLife

	secretBytes = 32
)

// secretsRecord is the row with the secrets of callback tokens.
type secretsRecord struct {
	Changes uint64       `json:"changes"` // grows with each change
	Secrets []taskSecret `json:"secrets"` // oldest first
}

type taskSecret struct {
	Created time.Time `json:"created"`
	Secret  []byte    `json:"secret"`
}

// update removes the secrets that have ended, or were created before a revocation, and
// adds a new one if it is time. It reports whether that changed the record.
func (r *secretsRecord) update(now, revoked time.Time) (changed bool) {
	kept := make([]taskSecret, 0, len(r.Secrets)+1)
	for i, s := range r.Secrets {
		superseded := i+1 < len(r.Secrets) && !now.Before(r.Secrets[i+1].Created.Add(secretOverlap+tokenLife))
		if !superseded && now.Before(s.Created.Add(secretLife)) && !s.Created.Before(revoked) {
			kept = append(kept, s)
		}
	}
	changed = len(kept) != len(r.Secrets)
	if n := len(kept); n == 0 || !now.Before(kept[n-1].Created.Add(secretInterval)) {
		secret := taskSecret{Created: now.UTC(), Secret: make([]byte, secretBytes)}
		if revoked.After(secret.Created) { // by another clock
			secret.Created = revoked
		}
		rand.Read(secret.Secret)
		kept, changed = append(kept, secret), true
	}
	if changed {
		r.Secrets = kept
		r.Changes++
	}
	return changed
}

// isOlderThan reports whether the other record replaces this one. Two replicas can only
// write different records with one number if the row was forged meanwhile, and one of them
// had just started: then that with the older secrets counts, because it has signed tokens.
func (r *secretsRecord) isOlderThan(other *secretsRecord) bool {
	if r.Changes != other.Changes || len(r.Secrets) == 0 || len(other.Secrets) == 0 {
		return r.Changes < other.Changes
	}
	return r.Secrets[0].Created.After(other.Secrets[0].Created)
}

// inUse returns the secrets at a time, the one that signs first.
func (r *secretsRecord) inUse(now time.Time) [][]byte {
	signing := 0
	for i, s := range r.Secrets {
		if !now.Before(s.Created.Add(secretOverlap)) {
			signing = i
		}
	}
	var list [][]byte
	for i := range r.Secrets {
		if i == signing {
			list = slices.Insert(list, 0, r.Secrets[i].Secret)
		} else {
			list = append(list, r.Secrets[i].Secret)
		}
	}
	return list
}
