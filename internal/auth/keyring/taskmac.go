package keyring

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"
)

// taskKeyLabel separates the key of callback tokens from other derived keys.
const taskKeyLabel = "caprouter task token v1"

// taskMAC appends the encoded MAC of a callback token to b.
type taskMAC func(b, signed []byte) []byte

// newTaskMAC derives the MAC function for callback tokens from a secret. A MAC is
// sufficient and costs an eighth of a signature, because only the router verifies them.
func newTaskMAC(secret []byte) (taskMAC, error) {
	derived, err := hkdf.Key(sha256.New, secret, nil, taskKeyLabel, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key of task tokens: %w", err)
	}
	// An HMAC that is reset need not hash the key again.
	macs := sync.Pool{New: func() any { return hmac.New(sha256.New, derived) }}
	return func(b, signed []byte) []byte {
		mac := macs.Get().(hash.Hash)
		defer macs.Put(mac)
		mac.Reset()
		_, _ = mac.Write(signed) // a hash cannot fail
		var sum [sha256.Size]byte
		return base64.RawURLEncoding.AppendEncode(b, mac.Sum(sum[:0]))
	}, nil
}

// matches compares the encoded text, so that only the canonical encoding is accepted.
func (m taskMAC) matches(signed, mac string) bool {
	return subtle.ConstantTimeCompare([]byte(mac), m(nil, []byte(signed))) == 1
}

// sharedMACs are the MAC functions of the secrets of callback tokens that replicas share.
// They are immutable.
type sharedMACs struct {
	sign   taskMAC
	accept []taskMAC // with that of sign
}

// minTaskSecretBytes is the minimum size of a secret: that of a MAC.
const minTaskSecretBytes = sha256.Size

// SetTaskSecrets replaces the secrets of callback tokens: the first one signs, and tokens
// of all are accepted, as are those that this router signed with its own keys before.
func (r *Ring) SetTaskSecrets(secrets [][]byte) error {
	shared := &sharedMACs{}
	for _, secret := range secrets {
		if len(secret) < minTaskSecretBytes {
			return fmt.Errorf("secret of task tokens: %d bytes, want at least %d", len(secret), minTaskSecretBytes)
		}
		mac, err := newTaskMAC(secret)
		if err != nil {
			return err
		}
		shared.accept = append(shared.accept, mac)
	}
	if len(shared.accept) == 0 {
		return errors.New("no secret of task tokens")
	}
	shared.sign = shared.accept[0]
	r.store.shared.Store(shared)
	return nil
}

// AppendTaskMAC appends the MAC of a callback token to b, in base64url: with the first
// shared secret or, if there is none, with the signing key.
func (r *Ring) AppendTaskMAC(b, signed []byte, now time.Time) []byte {
	if shared := r.store.shared.Load(); shared != nil {
		return shared.sign(b, signed)
	}
	return r.store.viewAt(now).signing.private.taskMAC(b, signed)
}

// VerifyTaskMAC reports whether mac, in base64url, is that of a callback token. It tries
// all shared secrets and accepted keys, because the header of these tokens has no kid.
func (r *Ring) VerifyTaskMAC(signed, mac string, now time.Time) bool {
	if shared := r.store.shared.Load(); shared != nil {
		for _, m := range shared.accept {
			if m.matches(signed, mac) {
				return true
			}
		}
	}
	for _, k := range r.store.viewAt(now).accepted {
		if k.private.taskMAC.matches(signed, mac) {
			return true
		}
	}
	return false
}
