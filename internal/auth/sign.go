package auth

import (
	"crypto/ed25519"
	"strings"
)

// signatureDomain stands before everything Sign signs. No token begins like
// that, so that no signature over data is one of a token.
const signatureDomain = "caprouter/"

// KeyID returns the name of the key that signs now: its RFC 7638 thumbprint.
func (s *Signer) KeyID() string { return s.currentKey().id }

// Sign returns the Ed25519 signature over data for one purpose, which is a
// constant of the program, and the name of the key it was made with: another may
// sign by the time one asks for KeyID. It holds for no other purpose.
func (s *Signer) Sign(purpose string, data []byte) (keyID string, sig []byte) {
	key := s.currentKey()
	return key.id, key.private.signData(domainSeparated(purpose, data))
}

// Verify reports whether sig is what Sign returned for the purpose and the data
// when keyID was the key's. It knows every key there ever was: what is written
// down outlives the tokens, and the private half of the key.
func (s *Signer) Verify(purpose, keyID string, data, sig []byte) bool {
	key := s.store.state.Load().byID[keyID]
	return key != nil && ed25519.Verify(key.public, domainSeparated(purpose, data), sig)
}

// domainSeparated puts the purpose before the data, with an end of its own: else one
// purpose could go on in the data of another.
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
