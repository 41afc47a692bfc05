package auth

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// keyPair is one Ed25519 key and what is made with it.
type keyPair struct {
	id      string // RFC 7638 thumbprint
	public  ed25519.PublicKey
	jwk     []byte      // the public half, as a member of a key set
	private *privateKey // nil when it is gone
}

// privateKey is what takes the private key, and what is derived from it. The
// key is in closures because fmt walks through unexported fields of other
// people's structs without asking our Format.
type privateKey struct {
	sign     func(signed string) ([]byte, error) // tokens for agents
	signData func(message []byte) []byte         // see Sign
	taskMAC  func(signed string) string          // see TaskToken
	header   string                              // of every token for an agent, encoded

	signCaller   func(signed string) ([]byte, error) // see CallerToken
	callerHeader string
	caller       *verifyKey
}

func newKeyPair(key ed25519.PrivateKey) (*keyPair, error) {
	pair, err := newPublicKeyPair(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	header, err := accessTokenHeader(pair.id)
	if err != nil {
		return nil, err
	}
	taskMAC, err := newTaskMAC(key)
	if err != nil {
		return nil, err
	}
	p := &privateKey{
		sign:     func(signed string) ([]byte, error) { return jwt.SigningMethodEdDSA.Sign(signed, key) },
		signData: func(message []byte) []byte { return ed25519.Sign(key, message) },
		taskMAC:  taskMAC,
		header:   header,
	}
	if err := p.addCallerKey(key); err != nil {
		return nil, err
	}
	pair.private = p
	return pair, nil
}

// newPublicKeyPair is a key whose private half is gone: it verifies signatures and
// makes none.
func newPublicKeyPair(public ed25519.PublicKey) (*keyPair, error) {
	id := thumbprint(public)
	member, err := strictjson.Marshal(jwk{
		Type: "OKP", Curve: "Ed25519", X: base64.RawURLEncoding.EncodeToString(public),
		KeyID: id, Use: "sig", Algorithm: jwt.SigningMethodEdDSA.Alg(),
	})
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return &keyPair{id: id, public: public, jwk: member}, nil
}

// thumbprint is the RFC 7638 thumbprint: the required members alone, in this order,
// without spaces.
func thumbprint(public ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(public)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func accessTokenHeader(kid string) (string, error) {
	return encodeSegment(tokenHeader{Type: "at+jwt", Algorithm: jwt.SigningMethodEdDSA.Alg(), KeyID: kid})
}
