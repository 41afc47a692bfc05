package auth

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
)

const (
	// keyOverlap is how long a new key is published before it signs. Agents keep
	// the key set for the 60 s it says, their libraries often look for a new key
	// no more than every 30 s, and the router itself looks every other second.
	keyOverlap = 2 * time.Minute

	// maxCallerTokenLife is the longest life of a caller's token.
	maxCallerTokenLife = 24 * time.Hour
	maxRequestLife     = contract.MaxAsyncTimeoutMS * time.Millisecond
	// keyClockLeeway covers what tokens outlive their work by, and clocks that
	// disagree.
	keyClockLeeway = 5 * time.Minute

	// retiredKeyLife is how long a key verifies that has stopped to sign. In its
	// last second it may have signed a caller's token, and in the last second of
	// that a request may have begun; whatever belongs to either is over by then.
	retiredKeyLife = maxCallerTokenLife + maxRequestLife + keyClockLeeway
)

// signingKey is a key with the times that say what it is good for.
//
//	made ──overlap──▶ signs … retired ──overlap──▶ verifies ──life──▶ old
//
// While the next key waits for its overlap, a retired one goes on signing.
type signingKey struct {
	*keyPair
	created time.Time
	retired time.Time // when the next one was made; zero for the current key
	revoked time.Time // zero = never; a key with its private half counts all the same
}

// isPublished reports whether everybody who verifies has had the time to learn of
// the key.
func (k *signingKey) isPublished(now time.Time) bool { return !now.Before(k.created.Add(keyOverlap)) }

// canSign reports whether the key is the current one or was so a moment ago.
func (k *signingKey) canSign(now time.Time) bool {
	return k.private != nil && (k.retired.IsZero() || now.Before(k.signsUntil()))
}

func (k *signingKey) signsUntil() time.Time    { return k.retired.Add(keyOverlap) }
func (k *signingKey) acceptedUntil() time.Time { return k.signsUntil().Add(retiredKeyLife) }

// isAccepted reports whether tokens count that the key has made.
func (k *signingKey) isAccepted(now time.Time) bool {
	return k.private != nil && (k.retired.IsZero() || now.Before(k.acceptedUntil()))
}

// keyring is all keys there ever were, in the order they were current; the last
// one is the current key.
type keyring []*signingKey

func (r keyring) sortByAge() {
	slices.SortFunc(r, func(a, b *signingKey) int {
		switch {
		case a.retired.IsZero():
			return 1
		case b.retired.IsZero():
			return -1
		}
		return cmp.Or(a.retired.Compare(b.retired), a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
}

// signingAt is the youngest key that is known everywhere. Where none is, the
// oldest has been published for longest.
func (r keyring) signingAt(now time.Time) *signingKey {
	var oldest *signingKey
	for _, k := range slices.Backward(r) {
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

// keyView is what a keyring means for a while.
type keyView struct {
	signing     *signingKey
	accepted    []*signingKey // the one that signs first, then the youngest
	jwks        []byte
	from, until time.Time // from ≤ now < until; zero = without end
}

func (v *keyView) isValidAt(now time.Time) bool {
	return !now.Before(v.from) && (v.until.IsZero() || now.Before(v.until))
}

// viewAt says what the keys mean at a time, and how long that holds.
func (r keyring) viewAt(now time.Time) *keyView {
	v := &keyView{signing: r.signingAt(now)}
	v.accepted = append(v.accepted, v.signing)
	for _, k := range slices.Backward(r) {
		if k != v.signing && k.isAccepted(now) {
			v.accepted = append(v.accepted, k)
		}
		v.narrowTo(now, k.created.Add(keyOverlap))
		if !k.retired.IsZero() {
			v.narrowTo(now, k.signsUntil())
			v.narrowTo(now, k.acceptedUntil())
		}
	}
	members := make([][]byte, len(v.accepted))
	for i, k := range v.accepted {
		members[i] = k.jwk
	}
	v.jwks = slices.Concat([]byte(`{"keys":[`), bytes.Join(members, []byte(",")), []byte("]}"))
	return v
}

// narrowTo narrows the time the view holds for to one side of a change.
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

// KeyState says what a key is good for.
type KeyState string

// The states of a key, in the order it goes through them.
const (
	KeyNext    KeyState = "next"    // published, does not sign yet
	KeySigning KeyState = "signing" // signs what is made now
	KeyRetired KeyState = "retired" // signs no more, but what it signed counts
	KeyOld     KeyState = "old"     // verifies signatures of the audit trail only
	KeyRevoked KeyState = "revoked" // the same, before its time
)

// KeyInfo describes a key of the ring.
type KeyInfo struct {
	ID        string    `json:"kid"`
	State     KeyState  `json:"state"`
	Created   time.Time `json:"made"`
	SignsFrom time.Time `json:"signs_from,omitzero"` // of the next one
	Until     time.Time `json:"until,omitzero"`      // its tokens count; of one that is no longer the current key
	Revoked   time.Time `json:"revoked,omitzero"`    // see CountsAgain
}

// RevocationFailed reports whether the key was revoked and its tokens count all the
// same: somebody has copied it back, or its revocation was cut short. Rotating
// with revoke once more ends that.
func (k *KeyInfo) RevocationFailed() bool {
	return !k.Revoked.IsZero() && k.State != KeyRevoked
}

// keyInfos lists the keys, the youngest first.
func (r keyring) keyInfos(now time.Time) []KeyInfo {
	signing := r.signingAt(now)
	list := make([]KeyInfo, 0, len(r))
	for _, k := range slices.Backward(r) {
		info := KeyInfo{ID: k.id, Created: k.created, Revoked: k.revoked}
		live := k.isAccepted(now)
		if live && !k.retired.IsZero() {
			info.Until = k.acceptedUntil()
		}
		switch {
		case k == signing:
			info.State = KeySigning
		case !live && !k.revoked.IsZero():
			info.State = KeyRevoked
		case !live:
			info.State = KeyOld
		case k.canSign(now) && !k.isPublished(now):
			info.State, info.SignsFrom = KeyNext, k.created.Add(keyOverlap)
		default:
			info.State = KeyRetired
		}
		list = append(list, info)
	}
	return list
}
