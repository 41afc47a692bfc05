package auth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// maxTokenBytes bounds a caller's token: more than ten times the usual size, and a
// quarter of the limit for request headers.
const maxTokenBytes = 8 << 10

const maxKIDBytes = 256

// compactToken is a checked token in compact serialization (RFC 7515, section 7.1).
// Its content is untrusted until the signature is verified.
type compactToken struct {
	alg, kid string   // kid is "" if the header has none
	typ      string   // "" if the header has none
	harmless []string // header parameters that only a TokenProfile accepts
	payload  []byte
}

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
	if err := c.readHeader(header); err != nil {
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

// refusedParameters returns parameters that select a key, extend the meaning of a
// token, or change the type of its content. A token with one of them is rejected,
// regardless of its value: if the router ignored it, it could misread the token,
// and if it used it, an attacker could choose the key.
func refusedParameters() []string {
	return []string{"crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64", "zip", "cty"}
}

func (c *compactToken) readHeader(data []byte) error {
	o, err := parseObject(data, headerParameters()...)
	if err != nil {
		return fmt.Errorf("has a header that is %w", err)
	}
	for _, name := range refusedParameters() {
		if _, ok := o[name]; ok && slices.Contains(harmlessParameters(), name) {
			c.harmless = append(c.harmless, name)
		} else if ok {
			return fmt.Errorf("has %s in its header, which is not taken", name)
		}
	}
	if c.alg, err = o.stringMember("alg"); err != nil || !slices.Contains(algorithms(), c.alg) {
		return fmt.Errorf("has another algorithm in its header than %s", strings.Join(algorithms(), ", "))
	}
	if c.typ, err = o.stringMember("typ"); err != nil {
		return errors.New("has a typ that is not a string")
	}
	c.kid, err = o.stringMember("kid")
	if _, named := o["kid"]; err != nil || named && !validKID(c.kid) {
		return fmt.Errorf("has a kid that is not 1 to %d printable ASCII characters", maxKIDBytes)
	}
	return nil
}

// validKID reports whether kid is a valid name of a key.
func validKID(kid string) bool {
	return kid != "" && len(kid) <= maxKIDBytes &&
		!strings.ContainsFunc(kid, func(r rune) bool { return r < ' ' || r > '~' })
}

// checkAlgorithm returns an error unless the algorithm of the header is that of the key:
// the header does not select how a signature is verified.
func (c *compactToken) checkAlgorithm(k *verifyKey) error {
	if c.alg != k.alg {
		return errors.New("has another algorithm in its header than its key has")
	}
	return nil
}

// jsonObject is a JSON object from outside: its members by name, each valid JSON.
type jsonObject map[string]json.RawMessage

// parseObject decodes exactly one object. It rejects duplicate names and names
// that differ from each other, or from a known one, only in case, because two
// parsers could choose different ones.
func parseObject(data []byte, known ...string) (jsonObject, error) {
	var o jsonObject
	if err := strictjson.UnmarshalAllowUnknown(data, &o); err != nil || o == nil {
		return nil, errors.New("not one JSON object with each name once")
	}
	simple := true
	for name := range o {
		for _, k := range known {
			if name != k && strings.EqualFold(name, k) {
				return nil, errOtherCase
			}
		}
		simple = simple && !strings.ContainsFunc(name, hasCase)
	}
	if simple { // the common case
		return o, nil
	}
	folded := make(map[string]bool, len(o))
	for name := range o {
		f := foldName(name)
		if folded[f] {
			return nil, errOtherCase
		}
		folded[f] = true
	}
	return o, nil
}

var errOtherCase = errors.New("a JSON object with names that differ only by case, or from a known one")

// hasCase reports whether r may differ in case from another character. If two
// names have no such characters, they are equal only if their bytes are equal.
func hasCase(r rune) bool { return 'A' <= r && r <= 'Z' || r > unicode.MaxASCII }

// foldName returns the same string for two names if strings.EqualFold reports that
// they are equal.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// stringMember returns a member that is a string, "" if it is absent. null is not
// a string.
func (o jsonObject) stringMember(name string) (string, error) {
	raw, ok := o[name]
	if !ok {
		return "", nil
	}
	var s string
	err := strictjson.Unmarshal(raw, &s)
	return s, err
}
