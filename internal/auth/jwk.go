package auth

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/internal/auth/weakkey"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	maxKeySetBytes = 256 << 10
	maxKeySetKeys  = 100
	maxKIDBytes    = 256
	maxQuoted      = 64 // bytes of a set in one log line

	// addressHint is the fix for a document that is not a key set.
	addressHint = "set jwks_url to the jwks_uri in the provider's /.well-known/openid-configuration"

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

var (
	errPrivateKey = errors.New("it is not public: the set contains its private part")
	errSharedKID  = errors.New("another key of the set has the same kid")
)

// otherUseError is the reason of a key that is meant for something else, as many keys
// in the sets of providers are. The issuer should correct every other unusable key.
type otherUseError string

func (e otherUseError) Error() string { return string(e) }

func otherUsef(format string, args ...any) error {
	return otherUseError(fmt.Sprintf(format, args...))
}

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
		return nil, nil, fmt.Errorf("key set: longer than %d bytes; %s", maxKeySetBytes, addressHint)
	}
	var set struct {
		Keys    []json.RawMessage `json:"keys"`
		Address json.RawMessage   `json:"jwks_uri"`
	}
	if err := strictjson.UnmarshalAllowUnknown(data, &set); err != nil {
		return nil, nil, fmt.Errorf("key set: %w; %s", err, addressHint)
	}
	switch {
	case set.Keys == nil && set.Address != nil:
		return nil, nil, fmt.Errorf("key set: it is the discovery document: set jwks_url to its jwks_uri, %.256s", set.Address)
	case set.Keys == nil:
		return nil, nil, errors.New("key set: has no member keys; " + addressHint)
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
	if err := weakkey.CheckPublic(key.key); err != nil {
		return nil, k.KeyID, err
	}
	return key, k.KeyID, nil
}

// verifyKey returns the key with its algorithm. weakkey checks its strength.
func (k *publicJWK) verifyKey() (*verifyKey, error) {
	method, err := k.algorithm()
	if err != nil {
		return nil, err
	}
	if err := k.checkPurpose(method.Alg()); err != nil {
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
	return &verifyKey{kid: k.KeyID, method: method, key: parsed.Key()}, nil
}

// algorithm returns the algorithm for keys of this type.
func (k *publicJWK) algorithm() (jwt.SigningMethod, error) {
	switch {
	case k.Type == "OKP" && k.Curve == ed25519Curve:
		return jwt.SigningMethodEdDSA, nil
	case k.Type == "EC" && k.Curve == p256Curve:
		return jwt.SigningMethodES256, nil
	case k.Type == "RSA":
		return jwt.SigningMethodRS256, nil
	case k.Type == "OKP":
		return nil, otherUsef("its curve is %s, not %s", quoteShort(k.Curve), ed25519Curve)
	case k.Type == "EC":
		return nil, otherUsef("its curve is %s, not %s", quoteShort(k.Curve), p256Curve)
	case k.Type == "oct":
		return nil, errors.New("it is a shared secret (kty oct), and a secret is not fetched")
	default:
		return nil, otherUsef("its kty is %s, not OKP, EC or RSA", quoteShort(k.Type))
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

// equalKeys reports whether two public keys are equal.
func equalKeys(a, b any) bool {
	k, ok := a.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && k.Equal(b)
}
