package strictjwt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxTokenBytes bounds a token: more than ten times the usual size, and a quarter of the
// limit for request headers.
const maxTokenBytes = 8 << 10

// Header contains the parameters of a token's header that are used. It is untrusted until
// the signature is verified.
type Header struct {
	Algorithm string   // one of Algorithms
	KeyID     string   // kid; "" = none
	Type      string   // typ; "" = none
	Hashes    []string // the hashes of a certificate that the header has: see CertificateHashes
}

// compactToken is a token in compact serialization (RFC 7515, section 7.1) whose form is
// checked.
type compactToken struct {
	header  Header
	payload []byte
}

// Algorithms returns the supported signature algorithms.
func Algorithms() []string { return []string{"EdDSA", "ES256", "RS256", "HS256"} }

// parseCompact parses a token of three base64url segments. It rejects
// non-canonical base64url and headers with refused parameters.
func parseCompact(token string) (*compactToken, error) {
	if len(token) > maxTokenBytes {
		return nil, fmt.Errorf("is longer than %d bytes", maxTokenBytes)
	}
	parts := strings.SplitN(token, ".", 4) // a fourth part means too many dots
	if len(parts) != 3 {
		return nil, errors.New("is not three parts joined by two dots")
	}
	header, err := decodeSegment("header", parts[0])
	if err != nil {
		return nil, err
	}
	payload, err := decodeSegment("claims", parts[1])
	if err != nil {
		return nil, err
	}
	if _, err := decodeSegment("signature", parts[2]); err != nil {
		return nil, err
	}
	c := &compactToken{payload: payload}
	if err := c.header.decode(header); err != nil {
		return nil, err
	}
	return c, nil
}

// decodeSegment decodes canonical base64url without padding.
func decodeSegment(part, text string) ([]byte, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// The decoder ignores line breaks, so the length is compared.
	if err != nil || base64.RawURLEncoding.EncodedLen(len(data)) != len(text) {
		return nil, fmt.Errorf("has a %s that is not plain base64url", part)
	}
	return data, nil
}

// headerParameters returns the parameters that are read, so that a header with
// another spelling of one of them is rejected.
func headerParameters() []string { return append(refusedParameters(), "alg", "kid", "typ") }

// CertificateHashes returns the names of the header parameters that are hashes of a
// certificate, by which no other key can be chosen. Whether a token with one of them is
// rejected is up to the caller of Parse; one with any other refused parameter always is.
func CertificateHashes() []string { return []string{"x5t", "x5t#S256"} }

// refusedParameters returns parameters that select a key, extend the meaning of a
// token, or change the type of its content. A token with one of them is rejected,
// regardless of its value: if the router ignored it, it could misread the token,
// and if it used it, an attacker could choose the key.
func refusedParameters() []string {
	return []string{"crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64", "zip", "cty"}
}

func (h *Header) decode(data []byte) error {
	o, err := parseObject(data, headerParameters()...)
	if err != nil {
		return fmt.Errorf("has a header that is %w", err)
	}
	for _, name := range refusedParameters() {
		if _, ok := o[name]; ok && slices.Contains(CertificateHashes(), name) {
			h.Hashes = append(h.Hashes, name)
		} else if ok {
			return fmt.Errorf("has %s in its header, which is not accepted", name)
		}
	}
	if h.Algorithm, err = o.stringMember("alg"); err != nil || !slices.Contains(Algorithms(), h.Algorithm) {
		return fmt.Errorf("has another algorithm in its header than %s", strings.Join(Algorithms(), ", "))
	}
	if h.Type, err = o.stringMember("typ"); err != nil {
		return errors.New("has a typ that is not a string")
	}
	h.KeyID, err = o.stringMember("kid")
	if _, named := o["kid"]; err != nil || named && !ValidKeyID(h.KeyID) {
		return fmt.Errorf("has a kid that is not 1 to %d printable ASCII characters", MaxKeyIDBytes)
	}
	return nil
}
