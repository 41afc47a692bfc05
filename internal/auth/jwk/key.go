package jwk

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/MicahParks/jwkset"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// The algorithms of public keys (RFC 7518, section 3.1; RFC 8037, section 3.1).
const (
	EdDSA = "EdDSA" // with an Ed25519 key
	ES256 = "ES256" // with a P-256 key
	RS256 = "RS256" // with an RSA key
)

const (
	maxIDBytes = 256
	maxQuoted  = 64 // bytes of a set in one log line

	ed25519Curve = "Ed25519"
	p256Curve    = "P-256"
	p256Bytes    = 32
)

// Key is a public key of a set. It is immutable.
type Key struct {
	ID        string           // kid; "" = none
	Algorithm string           // EdDSA, ES256 or RS256
	Public    crypto.PublicKey // ed25519.PublicKey, *ecdsa.PublicKey or *rsa.PublicKey
}

// AlgorithmOf returns the algorithm of an Ed25519, P-256 or RSA key.
func AlgorithmOf(public crypto.PublicKey) string {
	switch public.(type) {
	case ed25519.PublicKey:
		return EdDSA
	case *ecdsa.PublicKey:
		return ES256
	}
	return RS256
}

// publicJWK is a public key of an identity provider (RFC 7517; RFC 7518, section
// 6; RFC 8037, section 2). A pointer distinguishes an absent member from an empty
// one.
type publicJWK struct {
	Type       string   `json:"kty"`
	Use        *string  `json:"use"`
	Operations []string `json:"key_ops"`
	Algorithm  *string  `json:"alg"`
	KeyID      string   `json:"kid"`

	Curve    string `json:"crv"` // OKP and EC
	X        string `json:"x"`
	Y        string `json:"y"` // EC
	Modulus  string `json:"n"` // RSA
	Exponent string `json:"e"`

	privateMembers
}

// privateMembers are the members that only the owner of a key may have. Their
// values are ignored and may have any type.
type privateMembers struct {
	D     json.RawMessage `json:"d"`
	P     json.RawMessage `json:"p"`
	Q     json.RawMessage `json:"q"`
	DP    json.RawMessage `json:"dp"`
	DQ    json.RawMessage `json:"dq"`
	QI    json.RawMessage `json:"qi"`
	Other json.RawMessage `json:"oth"`
	K     json.RawMessage `json:"k"`
}

// anyPresent reports whether a private member is present.
func (m *privateMembers) anyPresent() bool {
	for _, v := range []json.RawMessage{m.D, m.P, m.Q, m.DP, m.DQ, m.QI, m.Other, m.K} {
		if len(v) > 0 && !bytes.Equal(v, []byte("null")) {
			return true
		}
	}
	return false
}

var errPrivateKey = errors.New("it is not public: the set contains its private part")

// OtherUseError is the reason of a key that is meant for something else, as many keys
// in the sets of providers are. The issuer should correct every other unusable key.
type OtherUseError string

func (e OtherUseError) Error() string { return string(e) }

func otherUsef(format string, args ...any) error {
	return OtherUseError(fmt.Sprintf(format, args...))
}

// parseKey decodes one key. If the key is unusable, id is returned nevertheless if it can
// be read.
func parseKey(data []byte) (key *Key, id string, err error) {
	var k publicJWK
	if err := strictjson.UnmarshalAllowUnknown(data, &k); err != nil {
		return nil, "", err
	}
	if len(k.KeyID) > maxIDBytes {
		return nil, "", fmt.Errorf("its kid is longer than %d bytes", maxIDBytes)
	}
	if k.anyPresent() {
		return nil, k.KeyID, errPrivateKey
	}
	key, err = k.decode()
	return key, k.KeyID, err
}

// decode returns the key with its algorithm.
func (k *publicJWK) decode() (*Key, error) {
	alg, err := k.algorithm()
	if err != nil {
		return nil, err
	}
	if err := k.checkPurpose(alg); err != nil {
		return nil, err
	}
	if err := k.checkEncoding(); err != nil {
		return nil, err
	}
	// Certificates of the key (x5c, x5u) are not passed on, because they are not used.
	parsed, err := jwkset.NewJWKFromMarshal(jwkset.JWKMarshal{
		KTY: jwkset.KTY(k.Type), CRV: jwkset.CRV(k.Curve), X: k.X, Y: k.Y, N: k.Modulus, E: k.Exponent,
	}, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return nil, fmt.Errorf("it is not a valid %s key: %s", k.Type, strings.ReplaceAll(err.Error(), "\n", ": "))
	}
	return &Key{ID: k.KeyID, Algorithm: alg, Public: parsed.Key()}, nil
}

// algorithm returns the algorithm for keys of this type.
func (k *publicJWK) algorithm() (string, error) {
	switch {
	case k.Type == "OKP" && k.Curve == ed25519Curve:
		return EdDSA, nil
	case k.Type == "EC" && k.Curve == p256Curve:
		return ES256, nil
	case k.Type == "RSA":
		return RS256, nil
	case k.Type == "OKP":
		return "", otherUsef("its curve is %s, not %s", quoteShort(k.Curve), ed25519Curve)
	case k.Type == "EC":
		return "", otherUsef("its curve is %s, not %s", quoteShort(k.Curve), p256Curve)
	case k.Type == "oct":
		return "", errors.New("it is a shared secret (kty oct), and a secret is not fetched")
	default:
		return "", otherUsef("its kty is %s, not OKP, EC or RSA", quoteShort(k.Type))
	}
}

// checkEncoding returns an error if a member of the key is not encoded as RFC 7518,
// section 6, requires. The library accepts padding, line breaks, stray bits and short
// coordinates. Leading zeros of an RSA key are accepted although they are not allowed,
// because some libraries write a sign byte.
func (k *publicJWK) checkEncoding() error {
	members := map[string][][2]string{
		"OKP": {{"x", k.X}},
		"EC":  {{"x", k.X}, {"y", k.Y}},
		"RSA": {{"n", k.Modulus}, {"e", k.Exponent}},
	}
	for _, m := range members[k.Type] {
		data, err := decodeBase64URL(m[0], m[1])
		if err != nil {
			return err
		}
		if k.Type == "EC" && len(data) != p256Bytes {
			return fmt.Errorf("its %s is %d bytes long, not %d", m[0], len(data), p256Bytes)
		}
	}
	return nil
}

// checkPurpose returns an error if the key is not meant for signatures of the
// algorithm.
func (k *publicJWK) checkPurpose(alg string) error {
	switch {
	case k.Algorithm != nil && *k.Algorithm != alg:
		return otherUsef("its alg is %s, and of such keys only %s is used", quoteShort(*k.Algorithm), alg)
	case k.Use != nil && *k.Use != "sig":
		return otherUsef("its use is %s, not sig", quoteShort(*k.Use))
	case k.Operations != nil && !slices.Contains(k.Operations, "verify"):
		return otherUsef("its key_ops do not hold verify")
	}
	return nil
}

// decodeBase64URL decodes canonical base64url without padding.
func decodeBase64URL(member, text string) ([]byte, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// The decoder ignores line breaks, so the length is compared.
	if err != nil || base64.RawURLEncoding.EncodedLen(len(data)) != len(text) {
		return nil, fmt.Errorf("its %s is not base64url", member)
	}
	return data, nil
}

// quoteShort returns a quoted prefix of untrusted text for a log line.
func quoteShort(s string) string {
	if len(s) > maxQuoted {
		return fmt.Sprintf("%q…", s[:maxQuoted])
	}
	return fmt.Sprintf("%q", s)
}
