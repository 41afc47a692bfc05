package auth

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

	// maxCallerTokenLife is the maximum lifetime of a caller's token.
	maxCallerTokenLife = 24 * time.Hour
	maxRequestLife     = contract.MaxAsyncTimeoutMS * time.Millisecond
	// keyClockLeeway covers clock skew and the time that tokens outlive their
	// work.
	keyClockLeeway = 5 * time.Minute

	// retiredKeyLife is how long a retired key verifies. In its last second it may
	// have signed a caller's token, and in the last second of that token a request
	// may have started; both have ended after this time.
	retiredKeyLife = maxCallerTokenLife + maxRequestLife + keyClockLeeway
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

// keyring contains all keys in the order in which they were current; the last one
// is the current key.
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

// signingAt returns the youngest published key. If none is published, it returns
// the oldest one.
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
	members := make([][]byte, 0, 2*len(v.accepted))
	for _, k := range v.accepted {
		members = append(members, k.private.eddsa.jwk, k.private.es256.jwk)
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

// KeyState is the use of a key.
type KeyState string

// The states of a key, in chronological order.
const (
	KeyNext    KeyState = "next"    // published, does not sign yet
	KeySigning KeyState = "signing" // signs new tokens
	KeyRetired KeyState = "retired" // does not sign, but its signatures are accepted
	KeyOld     KeyState = "old"     // verifies signatures of the audit log only
	KeyRevoked KeyState = "revoked" // like old, before its time
)

// KeyInfo describes a key of the ring.
type KeyInfo struct {
	ID        string    `json:"kid"`
	ES256ID   string    `json:"es256_kid,omitempty"` // kid of tokens for agents with ES256; "" if none is accepted
	State     KeyState  `json:"state"`
	Created   time.Time `json:"made"`
	SignsFrom time.Time `json:"signs_from,omitzero"` // only for the next key
	Until     time.Time `json:"until,omitzero"`      // end of acceptance; not for the current key
	Revoked   time.Time `json:"revoked,omitzero"`    // see RevocationFailed
}

// RevocationFailed reports whether the key was revoked but is accepted
// nevertheless, because its file was restored or its revocation was interrupted.
// Rotate with revoke again to fix it.
func (k *KeyInfo) RevocationFailed() bool {
	return !k.Revoked.IsZero() && k.State != KeyRevoked
}

// keyInfos lists the keys, youngest first.
func (r keyring) keyInfos(now time.Time) []KeyInfo {
	signing := r.signingAt(now)
	list := make([]KeyInfo, 0, len(r))
	for _, k := range slices.Backward(r) {
		info := KeyInfo{ID: k.id, Created: k.created, Revoked: k.revoked}
		live := k.isAccepted(now)
		if live {
			info.ES256ID = k.private.es256.kid
		}
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
