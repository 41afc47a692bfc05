package sharedkeys

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/auth/keyring"
)

const (
	// keyLife is how long the keys of a replica are accepted after it published them.
	keyLife = time.Hour
	// renewInterval is how often a replica publishes its keys.
	renewInterval = 20 * time.Second
	// runningFor is how long a replica counts as running after it published its keys.
	runningFor = 3 * renewInterval
	// clockLeeway is the permitted difference between the clocks of two replicas.
	clockLeeway = 5 * time.Minute
)

// announcement is the row of a replica.
type announcement struct {
	Issued      time.Time           `json:"issued"` // later than that of every earlier row, except for rows of the future
	Stopped     bool                `json:"stopped,omitempty"`
	ContentKeys []string            `json:"content_keys"` // names; the first one encrypts
	Revoked     time.Time           `json:"revoked,omitzero"`
	Keys        []keyring.PublicKey `json:"keys"`
}

// isFuture reports whether an announcement was issued by a clock that was ahead. Replicas ignore
// it, unless their clocks were ahead as well.
func isFuture(issued, now time.Time) bool { return issued.After(now.Add(clockLeeway)) }

// errReplayed is an announcement that is older than a known one.
var errReplayed = errors.New("it is older than one that was received before")

// peerSet contains the latest announcement of each other replica. It is not safe for
// concurrent use.
type peerSet map[string]*announcement

// add accepts an announcement unless a later one is known.
func (p peerSet) add(name string, a *announcement, now time.Time) error {
	known := p[name]
	switch {
	case isFuture(a.Issued, now):
		return fmt.Errorf("it was issued at %s, and the time is %s here: synchronize the clocks",
			a.Issued.Format(time.RFC3339), now.Format(time.RFC3339))
	case known != nil && !isFuture(known.Issued, now) && a.Issued.Before(known.Issued):
		return errReplayed
	}
	p[name] = a
	return nil
}

// keys returns the keys that are accepted at a time.
func (p peerSet) keys(now time.Time) []keyring.PublicKey {
	var keys []keyring.PublicKey
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if a := p[name]; now.Before(a.Issued.Add(keyLife)) {
			keys = append(keys, a.Keys...)
		}
	}
	return keys
}

// lastRevocation returns when a replica last revoked a key; zero = never.
func (p peerSet) lastRevocation() (last time.Time) {
	for _, a := range p {
		if a.Revoked.After(last) {
			last = a.Revoked
		}
	}
	return last
}

// checkContentKeys returns an error if a running replica could not decrypt what a replica
// with these keys encrypts, or the reverse.
func (p peerSet) checkContentKeys(ids []string, now time.Time) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		a := p[name]
		if a.Stopped || len(a.ContentKeys) == 0 || !now.Before(a.Issued.Add(runningFor)) {
			continue
		}
		switch {
		case !slices.Contains(a.ContentKeys, ids[0]):
			return fmt.Errorf("keys of stored contents: the running replica %s does not have the key %s, with which this one would encrypt: "+
				"add it there in a second line first, and restart that replica", name, ids[0])
		case !slices.Contains(ids, a.ContentKeys[0]):
			return fmt.Errorf("keys of stored contents: the running replica %s encrypts with the key %s, which this one does not have: "+
				"add it here (store.encryption)", name, a.ContentKeys[0])
		}
	}
	return nil
}
