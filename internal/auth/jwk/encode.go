package jwk

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/MicahParks/jwkset"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// EncodeEd25519 returns the public key as an entry of a key set (RFC 8037, section 2), and
// its kid, which is its thumbprint.
func EncodeEd25519(public ed25519.PublicKey) (id string, entry []byte, err error) {
	id = Thumbprint(public)
	key, err := jwkset.NewJWKFromKey(public, jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{KID: id, USE: jwkset.UseSig}, // the algorithm is that of the key's type
	})
	if err != nil {
		return "", nil, fmt.Errorf("encode key: %w", err)
	}
	if entry, err = strictjson.Marshal(key.Marshal()); err != nil {
		return "", nil, fmt.Errorf("encode key: %w", err)
	}
	return id, entry, nil
}

// EncodeP256 returns the public key as an entry of a key set (RFC 7518, section 6.2), and
// its kid, which is its RFC 7638 thumbprint.
func EncodeP256(public *ecdsa.PublicKey) (id string, entry []byte, err error) {
	metadata := jwkset.JWKMetadataOptions{ALG: jwkset.AlgES256, USE: jwkset.UseSig}
	key, err := jwkset.NewJWKFromKey(public, jwkset.JWKOptions{Metadata: metadata})
	if err != nil {
		return "", nil, fmt.Errorf("encode key: %w", err)
	}
	member := key.Marshal()
	sum := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + member.X + `","y":"` + member.Y + `"}`))
	member.KID = base64.RawURLEncoding.EncodeToString(sum[:])
	if entry, err = strictjson.Marshal(member); err != nil {
		return "", nil, fmt.Errorf("encode key: %w", err)
	}
	return member.KID, entry, nil
}

// Thumbprint returns the RFC 7638 thumbprint of an Ed25519 key: a hash of the required members in a
// fixed order, without spaces.
func Thumbprint(public ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(public)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
