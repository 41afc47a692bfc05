package keyring

import (
	"slices"
	"time"
)

// State is the use of a key.
type State string

// The states of a key, in chronological order.
const (
	StateNext    State = "next"    // published, does not sign yet
	StateSigning State = "signing" // signs new tokens
	StateRetired State = "retired" // does not sign, but its signatures are accepted
	StateOld     State = "old"     // verifies signatures of the audit log only
	StateRevoked State = "revoked" // like old, before its time
)

// Info describes a key of the ring.
type Info struct {
	ID        string    `json:"kid"`
	ES256ID   string    `json:"es256_kid,omitempty"` // kid of tokens for agents with ES256; "" if none is accepted
	State     State     `json:"state"`
	Created   time.Time `json:"made"`
	SignsFrom time.Time `json:"signs_from,omitzero"` // only for the next key
	Until     time.Time `json:"until,omitzero"`      // end of acceptance; not for the current key
	Revoked   time.Time `json:"revoked,omitzero"`    // see RevocationFailed
}

// RevocationFailed reports whether the key was revoked but is accepted
// nevertheless, because its file was restored or its revocation was interrupted.
// Rotate with revoke again to fix it.
func (k *Info) RevocationFailed() bool {
	return !k.Revoked.IsZero() && k.State != StateRevoked
}

// keyInfos lists the keys, youngest first.
func (l keyList) keyInfos(now time.Time) []Info {
	signing := l.signingAt(now)
	list := make([]Info, 0, len(l))
	for _, k := range slices.Backward(l) {
		info := Info{ID: k.id, Created: k.created, Revoked: k.revoked}
		live := k.isAccepted(now)
		if live {
			info.ES256ID = k.private.ES256.ID
		}
		if live && !k.retired.IsZero() {
			info.Until = k.acceptedUntil()
		}
		switch {
		case k == signing:
			info.State = StateSigning
		case !live && !k.revoked.IsZero():
			info.State = StateRevoked
		case !live:
			info.State = StateOld
		case k.canSign(now) && !k.isPublished(now):
			info.State, info.SignsFrom = StateNext, k.created.Add(keyOverlap)
		default:
			info.State = StateRetired
		}
		list = append(list, info)
	}
	return list
}
