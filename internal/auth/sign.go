package auth

import (
	"crypto/ed25519"
	"strings"
)

// signatureDomain is the prefix of all data that Sign signs. No token has this
// prefix, so a signature over data is never valid for a token.
const signatureDomain = "caprouter/"

// KeyID returns the id of the current signing key: its RFC 7638 thumbprint.
func (s *Signer) KeyID() string { return s.currentKey().id }

// Sign returns the Ed25519 signature over data and the id of the key. purpose is a
// constant of the program; the signature is valid for this purpose only. Use the
// returned id, because KeyID may change meanwhile.
func (s *Signer) Sign(purpose string, data []byte) (keyID string, sig []byte) {
	key := s.currentKey()
	return key.id, key.private.signData(domainSeparated(purpose, data))
}

// Verify reports whether sig is the signature of the key over purpose and data. It
// accepts every key of the ring, because signed records outlive tokens and the
// private halves of keys.
func (s *Signer) Verify(purpose, keyID string, data, sig []byte) bool {
	key := s.store.state.Load().byID[keyID]
	return key != nil && ed25519.Verify(key.public, domainSeparated(purpose, data), sig)
}

// domainSeparated joins purpose and data with a separator, so that no other split
// of the bytes gives the same input.
func domainSeparated(purpose string, data []byte) []byte {
	if strings.Contains(purpose, "\x00") {
		panic("auth: a purpose must not hold a NUL")
	}
	message := make([]byte, 0, len(signatureDomain)+len(purpose)+1+len(data))
	message = append(message, signatureDomain...)
	message = append(message, purpose...)
	message = append(message, 0)
	return append(message, data...)
}
