package auth

import (
	"crypto/ed25519"

	"github.com/caprouter/caprouter/internal/auth/jwk"
)

// keyPair is one Ed25519 key with its derived keys and functions.
type keyPair struct {
	id      string // RFC 7638 thumbprint
	public  ed25519.PublicKey
	jwk     []byte      // the public half, as an entry of a key set
	private *privateKey // nil if it was removed
}

// privateKey contains the operations that use the private key. The key is hidden
// in closures, because fmt prints unexported fields of a struct without calling
// their Format method.
type privateKey struct {
	eddsa, es256 *agentKey                   // tokens for agents
	signData     func(message []byte) []byte // see Sign
	taskMAC      taskMAC                     // see TaskToken

	signCaller   func(signed string) ([]byte, error) // see CallerToken
	callerHeader string
	caller       *verifyKey
}

func newKeyPair(key ed25519.PrivateKey) (*keyPair, error) {
	pair, err := newPublicKeyPair(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	eddsa, err := newAgentKey(AlgEdDSA, pair.id, pair.jwk, func(signed []byte) ([]byte, error) {
		return ed25519.Sign(key, signed), nil
	})
	if err != nil {
		return nil, err
	}
	es256, err := newES256Key(key)
	if err != nil {
		return nil, err
	}
	taskMAC, err := newTaskMAC(key.Seed())
	if err != nil {
		return nil, err
	}
	p := &privateKey{
		eddsa: eddsa, es256: es256,
		signData: func(message []byte) []byte { return ed25519.Sign(key, message) },
		taskMAC:  taskMAC,
	}
	if err := p.addCallerKey(key); err != nil {
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
	return &keyPair{id: id, public: public, jwk: entry}, nil
}

func accessTokenHeader(alg, kid string) (string, error) {
	return encodeSegment(tokenHeader{Type: "at+jwt", Algorithm: alg, KeyID: kid})
}
