package keyring

import (
	"crypto/ed25519"

	"github.com/caprouter/caprouter/internal/auth/jwk"
)

// keyPair is one Ed25519 key with its derived keys and functions.
type keyPair struct {
	id      string // RFC 7638 thumbprint
	public  ed25519.PublicKey
	entry   []byte      // the public half, as an entry of a key set
	private *privateKey // nil if it was removed
}

// privateKey contains the operations that use the private key. The key is hidden
// in closures, because fmt prints unexported fields of a struct without calling
// their Format method.
type privateKey struct {
	TokenKeys
	es256Entry   []byte // the public half of ES256, as an entry of a key set
	es256Point   []byte // the same, uncompressed (SEC 1)
	callerPublic ed25519.PublicKey

	signData func(message []byte) []byte // see Sign
	taskMAC  taskMAC                     // see AppendTaskMAC
}

func newKeyPair(key ed25519.PrivateKey) (*keyPair, error) {
	pair, err := newPublicKeyPair(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	p := &privateKey{signData: func(message []byte) []byte { return ed25519.Sign(key, message) }}
	p.EdDSA = newEd25519TokenKey(pair.id, key)
	if err := p.addES256Key(key); err != nil {
		return nil, err
	}
	if err := p.addCallerKey(key); err != nil {
		return nil, err
	}
	if p.taskMAC, err = newTaskMAC(key.Seed()); err != nil {
		return nil, err
	}
	pair.private = p
	return pair, nil
}

// newPublicKeyPair returns a key without its private half: it verifies signatures
// and creates none.
func newPublicKeyPair(public ed25519.PublicKey) (*keyPair, error) {
	id, entry, err := jwk.EncodeEd25519(public)
	if err != nil {
		return nil, err
	}
	return &keyPair{id: id, public: public, entry: entry}, nil
}
