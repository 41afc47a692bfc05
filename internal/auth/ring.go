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

// ringKey is a key with the times that say what it is good for.
//
//	made ──overlap──▶ signs … retired ──overlap──▶ verifies ──life──▶ old
//
// While the next key waits for its overlap, a retired one goes on signing.
type ringKey struct {
	*keyPair
	made    time.Time
	retired time.Time // when the next one was made; zero for the current key
	revoked time.Time // zero = never; a key with its private half counts all the same
}

// settled reports whether everybody who verifies has had the time to learn of
// the key.
func (k *ringKey) settled(now time.Time) bool { return !now.Before(k.made.Add(keyOverlap)) }

// maySign reports whether the key is the current one or was so a moment ago.
func (k *ringKey) maySign(now time.Time) bool {
	return k.private != nil && (k.retired.IsZero() || now.Before(k.stops()))
}

func (k *ringKey) stops() time.Time { return k.retired.Add(keyOverlap) }
func (k *ringKey) ends() time.Time  { return k.stops().Add(retiredKeyLife) }

// live reports whether tokens count that the key has made.
func (k *ringKey) live(now time.Time) bool {
	return k.private != nil && (k.retired.IsZero() || now.Before(k.ends()))
}

// keyring is all keys there ever were, in the order they were current; the last
// one is the current key.
type keyring []*ringKey

func (r keyring) sort() {
	slices.SortFunc(r, func(a, b *ringKey) int {
		switch {
		case a.retired.IsZero():
			return 1
		case b.retired.IsZero():
			return -1
		}
		return cmp.Or(a.retired.Compare(b.retired), a.made.Compare(b.made), cmp.Compare(a.id, b.id))
	})
}

// signing is the youngest key that is known everywhere. Where none is, the
// oldest has been published for longest.
func (r keyring) signing(now time.Time) *ringKey {
	var oldest *ringKey
	for _, k := range slices.Backward(r) {
		if !k.maySign(now) {
			continue
		}
		if k.settled(now) {
			return k
		}
		oldest = k
	}
	return oldest
}

// view is what a keyring means for a while.
type view struct {
	signing     *ringKey
	live        []*ringKey // the one that signs first, then the youngest
	jwks        []byte
	from, until time.Time // from ≤ now < until; zero = without end
}

func (v *view) covers(now time.Time) bool {
	return !now.Before(v.from) && (v.until.IsZero() || now.Before(v.until))
}

// at says what the keys mean at a time, and how long that holds.
func (r keyring) at(now time.Time) *view {
	v := &view{signing: r.signing(now)}
	v.live = append(v.live, v.signing)
	for _, k := range slices.Backward(r) {
		if k != v.signing && k.live(now) {
			v.live = append(v.live, k)
		}
		v.change(now, k.made.Add(keyOverlap))
		if !k.retired.IsZero() {
			v.change(now, k.stops())
			v.change(now, k.ends())
		}
	}
	members := make([][]byte, len(v.live))
	for i, k := range v.live {
		members[i] = k.jwk
	}
	v.jwks = slices.Concat([]byte(`{"keys":[`), bytes.Join(members, []byte(",")), []byte("]}"))
	return v
}

// change narrows the time the view holds for to one side of a change.
func (v *view) change(now, at time.Time) {
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

// describe lists the keys, the youngest first.
func (r keyring) describe(now time.Time) []KeyInfo {
	signing := r.signing(now)
	list := make([]KeyInfo, 0, len(r))
	for _, k := range slices.Backward(r) {
		info := KeyInfo{ID: k.id, Created: k.made, Revoked: k.revoked}
		live := k.live(now)
		if live && !k.retired.IsZero() {
			info.Until = k.ends()
		}
		switch {
		case k == signing:
			info.State = KeySigning
		case !live && !k.revoked.IsZero():
			info.State = KeyRevoked
		case !live:
			info.State = KeyOld
		case k.maySign(now) && !k.settled(now):
			info.State, info.SignsFrom = KeyNext, k.made.Add(keyOverlap)
		default:
			info.State = KeyRetired
		}
		list = append(list, info)
	}
	return list
}
