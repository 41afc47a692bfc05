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
	jwk     []byte       // the public half, as a member of a key set
	private *privateHalf // nil when it is gone
}

// privateHalf is what takes the private key, and what is derived from it. The
// key is in closures because fmt walks through unexported fields of other
// people's structs without asking our Format.
type privateHalf struct {
	sign     func(signed string) ([]byte, error) // tokens for agents
	signData func(message []byte) []byte         // see Sign
	taskMAC  func(signed string) string          // see TaskToken
	header   string                              // of every token for an agent, encoded

	signCaller   func(signed string) ([]byte, error) // see CallerToken
	callerHeader string
	caller       *verifyKey
}

func pairOf(key ed25519.PrivateKey) (*keyPair, error) {
	pair, err := publicPairOf(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	header, err := accessTokenHeader(pair.id)
	if err != nil {
		return nil, err
	}
	taskMAC, err := taskMACOf(key)
	if err != nil {
		return nil, err
	}
	p := &privateHalf{
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

// publicPairOf is a key whose private half is gone: it verifies signatures and
// makes none.
func publicPairOf(public ed25519.PublicKey) (*keyPair, error) {
	id := keyIDOf(public)
	member, err := strictjson.Marshal(jwk{
		Type: "OKP", Curve: "Ed25519", X: base64.RawURLEncoding.EncodeToString(public),
		KeyID: id, Use: "sig", Algorithm: jwt.SigningMethodEdDSA.Alg(),
	})
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return &keyPair{id: id, public: public, jwk: member}, nil
}

// keyIDOf is the RFC 7638 thumbprint: the required members alone, in this order,
// without spaces.
func keyIDOf(public ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(public)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func accessTokenHeader(kid string) (string, error) {
	return segment(tokenHeader{Type: "at+jwt", Algorithm: jwt.SigningMethodEdDSA.Alg(), KeyID: kid})
}
