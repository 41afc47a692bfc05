package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	maxKeySetBytes = 256 << 10
	maxKeySetKeys  = 100
	maxKIDBytes    = 256
	maxQuoted      = 64 // bytes of a set in one log line

	ed25519Curve = "Ed25519"
	p256Curve    = "P-256"
	p256Bytes    = 32
)

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

// Errors of well-formed keys. They are logged as warnings, because the issuer
// should correct them.
var (
	errPrivateKey = errors.New("it is not public: the set contains its private part")
	errSharedKID  = errors.New("another key of the set has the same kid")
)

// unusableKey is a key of a set that cannot verify tokens, with the reason.
type unusableKey struct {
	index int
	kid   string
	why   error
}

// parseKeySet decodes a set of public keys. An unusable key does not invalidate
// the others, because sets contain keys for encryption and for other algorithms. A
// malformed set is an error.
func parseKeySet(data []byte) (usable []*verifyKey, unusable []unusableKey, err error) {
	if len(data) > maxKeySetBytes {
		return nil, nil, fmt.Errorf("key set: longer than %d bytes", maxKeySetBytes)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := strictjson.UnmarshalAllowUnknown(data, &set); err != nil {
		return nil, nil, fmt.Errorf("key set: %w", err)
	}
	switch {
	case set.Keys == nil:
		return nil, nil, errors.New("key set: has no member keys")
	case len(set.Keys) > maxKeySetKeys:
		return nil, nil, fmt.Errorf("key set: has %d keys, more than %d", len(set.Keys), maxKeySetKeys)
	}
	kids := make(map[string]int, len(set.Keys)) // number of keys with this kid, usable or not
	places := make([]int, 0, len(set.Keys))
	for i, raw := range set.Keys {
		key, kid, err := parsePublicJWK(raw)
		if kid != "" {
			kids[kid]++
		}
		if err != nil {
			unusable = append(unusable, unusableKey{index: i, kid: kid, why: err})
			continue
		}
		usable, places = append(usable, key), append(places, i)
	}
	// Drop every key whose kid is not unique.
	unique := usable[:0]
	for i, key := range usable {
		if kids[key.kid] > 1 {
			unusable = append(unusable, unusableKey{index: places[i], kid: key.kid, why: errSharedKID})
			continue
		}
		unique = append(unique, key)
	}
	return unique, unusable, nil
}

// parsePublicJWK decodes one key. If the key is unusable, kid is returned
// nevertheless if it can be read.
func parsePublicJWK(data []byte) (key *verifyKey, kid string, err error) {
	var k publicJWK
	if err := strictjson.UnmarshalAllowUnknown(data, &k); err != nil {
		return nil, "", err
	}
	if len(k.KeyID) > maxKIDBytes {
		return nil, "", fmt.Errorf("its kid is longer than %d bytes", maxKIDBytes)
	}
	if k.anyPresent() {
		return nil, k.KeyID, errPrivateKey
	}
	key, err = k.verifyKey()
	if err != nil {
		return nil, k.KeyID, err
	}
	if _, err := checkPublicKey(key.key); err != nil {
		return nil, k.KeyID, err
	}
	return key, k.KeyID, nil
}

// verifyKey returns the key with its algorithm. checkPublicKey checks its
// strength.
func (k *publicJWK) verifyKey() (*verifyKey, error) {
	method, decode, err := k.algorithm()
	if err != nil {
		return nil, err
	}
	if err := k.checkPurpose(method.Alg()); err != nil {
		return nil, err
	}
	public, err := decode(k)
	if err != nil {
		return nil, err
	}
	return &verifyKey{kid: k.KeyID, method: method, key: public}, nil
}

// algorithm returns the algorithm for keys of this type, and the function that
// decodes the members of the type.
func (k *publicJWK) algorithm() (jwt.SigningMethod, func(*publicJWK) (any, error), error) {
	switch {
	case k.Type == "OKP" && k.Curve == ed25519Curve:
		return jwt.SigningMethodEdDSA, (*publicJWK).ed25519Key, nil
	case k.Type == "EC" && k.Curve == p256Curve:
		return jwt.SigningMethodES256, (*publicJWK).p256Key, nil
	case k.Type == "OKP":
		return nil, nil, fmt.Errorf("its curve is %s, not %s", quoteShort(k.Curve), ed25519Curve)
	case k.Type == "EC":
		return nil, nil, fmt.Errorf("its curve is %s, not %s", quoteShort(k.Curve), p256Curve)
	case k.Type == "RSA":
		return jwt.SigningMethodRS256, (*publicJWK).rsaKey, nil
	case k.Type == "oct":
		return nil, nil, errors.New("it is a shared secret (kty oct), and a secret is not fetched")
	default:
		return nil, nil, fmt.Errorf("its kty is %s, not OKP, EC or RSA", quoteShort(k.Type))
	}
}

// checkPurpose returns an error if the key is not meant for signatures of the
// algorithm.
func (k *publicJWK) checkPurpose(alg string) error {
	switch {
	case k.Algorithm != nil && *k.Algorithm != alg:
		return fmt.Errorf("its alg is %s, and of such keys only %s is used", quoteShort(*k.Algorithm), alg)
	case k.Use != nil && *k.Use != "sig":
		return fmt.Errorf("its use is %s, not sig", quoteShort(*k.Use))
	case k.Operations != nil && !slices.Contains(k.Operations, "verify"):
		return errors.New("its key_ops do not hold verify")
	}
	return nil
}

func (k *publicJWK) ed25519Key() (any, error) {
	x, err := decodeBase64URL("x", k.X)
	return ed25519.PublicKey(x), err
}

func (k *publicJWK) p256Key() (any, error) {
	x, err := decodeBase64URL("x", k.X)
	if err != nil {
		return nil, err
	}
	y, err := decodeBase64URL("y", k.Y)
	if err != nil {
		return nil, err
	}
	if len(x) != p256Bytes || len(y) != p256Bytes {
		return nil, fmt.Errorf("its x and y are %d and %d bytes long, not %d each", len(x), len(y), p256Bytes)
	}
	point := slices.Concat([]byte{4}, x, y) // uncompressed (SEC 1, section 2.3.3)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return nil, fmt.Errorf("its x and y are no point on the curve: %w", err)
	}
	return key, nil
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

// equalKeys reports whether two public keys are equal.
func equalKeys(a, b any) bool {
	k, ok := a.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && k.Equal(b)
}
