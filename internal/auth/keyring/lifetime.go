package keyring

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
)

const (
	// keyOverlap is how long a new key is published before it signs. Agents cache
	// the key set for the 60 s of its Cache-Control header, many libraries look
	// for a new key at most every 30 s, and the router itself checks every other
	// second.
	keyOverlap = 2 * time.Minute

	// MaxCallerTokenLife is the maximum lifetime of a caller's token, whichever issuer
	// signs it. Retired keys verify for this time and longer.
	MaxCallerTokenLife = 24 * time.Hour
	maxRequestLife     = contract.MaxAsyncTimeoutMS * time.Millisecond
	// keyClockLeeway covers clock skew and the time that tokens outlive their
	// work.
	keyClockLeeway = 5 * time.Minute

	// retiredKeyLife is how long a retired key verifies. In its last second it may
	// have signed a caller's token, and in the last second of that token a request
	// may have started; both have ended after this time.
	retiredKeyLife = MaxCallerTokenLife + maxRequestLife + keyClockLeeway
)

// signingKey is a key with the times that determine its use.
//
//	created ──overlap──▶ signs … retired ──overlap──▶ verifies ──life──▶ old
//
// While the next key waits for its overlap, the retired key continues to sign.
type signingKey struct {
	*keyPair
	created time.Time
	retired time.Time // when the next key was created; zero for the current key
	revoked time.Time // zero = never; a revoked key with a private half is accepted nevertheless
}

// isPublished reports whether all verifiers had time to load the key.
func (k *signingKey) isPublished(now time.Time) bool { return !now.Before(k.created.Add(keyOverlap)) }

// canSign reports whether the key is current, or was current until a moment ago.
func (k *signingKey) canSign(now time.Time) bool {
	return k.private != nil && (k.retired.IsZero() || now.Before(k.signsUntil()))
}

func (k *signingKey) signsUntil() time.Time    { return k.retired.Add(keyOverlap) }
func (k *signingKey) acceptedUntil() time.Time { return k.signsUntil().Add(retiredKeyLife) }

// isAccepted reports whether tokens signed by the key are accepted.
func (k *signingKey) isAccepted(now time.Time) bool {
	return k.private != nil && (k.retired.IsZero() || now.Before(k.acceptedUntil()))
}

// keyList contains all keys in the order in which they were current; the last one
// is the current key.
type keyList []*signingKey

func (l keyList) sortByAge() {
	slices.SortFunc(l, func(a, b *signingKey) int {
		switch {
		case a.retired.IsZero():
			return 1
		case b.retired.IsZero():
			return -1
		}
		return cmp.Or(a.retired.Compare(b.retired), a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
}

// signingAt returns the youngest published key. If none is published, it returns
// the oldest one.
func (l keyList) signingAt(now time.Time) *signingKey {
	var oldest *signingKey
	for _, k := range slices.Backward(l) {
		if !k.canSign(now) {
			continue
		}
		if k.isPublished(now) {
			return k
		}
		oldest = k
	}
	return oldest
}

// keyView is the use of all keys during a period.
type keyView struct {
	signing     *signingKey
	accepted    []*signingKey // the signing key first, then the youngest
	jwks        []byte
	from, until time.Time // from ≤ now < until; zero = unlimited
}

func (v *keyView) isValidAt(now time.Time) bool {
	return !now.Before(v.from) && (v.until.IsZero() || now.Before(v.until))
}

// viewAt returns the use of the keys at a time, with the period in which it is
// valid.
func (l keyList) viewAt(now time.Time) *keyView {
	v := &keyView{signing: l.signingAt(now)}
	v.accepted = append(v.accepted, v.signing)
	for _, k := range slices.Backward(l) {
		if k != v.signing && k.isAccepted(now) {
			v.accepted = append(v.accepted, k)
		}
		v.narrowTo(now, k.created.Add(keyOverlap))
		if !k.retired.IsZero() {
			v.narrowTo(now, k.signsUntil())
			v.narrowTo(now, k.acceptedUntil())
		}
	}
	members := make([][]byte, 0, 2*len(v.accepted))
	for _, k := range v.accepted {
		members = append(members, k.entry, k.private.es256Entry)
	}
	v.jwks = slices.Concat([]byte(`{"keys":[`), bytes.Join(members, []byte(",")), []byte(jwksEnd))
	return v
}

// jwksEnd ends a key set that has keys.
const jwksEnd = "]}"

// narrowTo limits the period of the view to one side of a change.
func (v *keyView) narrowTo(now, at time.Time) {
	switch {
	case now.Before(at):
		if v.until.IsZero() || at.Before(v.until) {
			v.until = at
		}
	case at.After(v.from):
		v.from = at
	}
}
