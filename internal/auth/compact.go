package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// maxTokenBytes bounds a token of a caller: more than ten times what one needs,
// and a quarter of what a request may have in its header.
const maxTokenBytes = 8 << 10

// compactToken is a token in the compact form (RFC 7515, section 7.1), taken apart.
// Nothing it says is to be believed before its signature holds.
type compactToken struct {
	alg, kid  string // kid is "" when the header names none
	typ       string // "" when the header names none
	payload   []byte
	signed    string // what the signature is over
	signature []byte
}

// parseCompact takes a token apart that has the one form we take: three parts
// of base64url in the one spelling the bytes have, the first of them a header
// that asks for nothing special.
func parseCompact(token string) (*compactToken, error) {
	if len(token) > maxTokenBytes {
		return nil, fmt.Errorf("is longer than %d bytes", maxTokenBytes)
	}
	parts := strings.SplitN(token, ".", 4) // a fourth part is a dot too many
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
	signature, err := decodeSegment("signature", parts[2])
	if err != nil {
		return nil, err
	}
	c := &compactToken{
		payload: payload, signature: signature,
		signed: token[:len(parts[0])+1+len(parts[1])],
	}
	if err := c.readHeader(header); err != nil {
		return nil, err
	}
	return c, nil
}

func decodeSegment(part, text string) ([]byte, error) {
	data, err := decodeBase64URL(part, text)
	if err != nil {
		return nil, fmt.Errorf("has a %s that is not plain base64url", part)
	}
	return data, nil
}

// headerParameters are those we look at, so that no other spelling of one may
// stand beside it.
func headerParameters() []string { return append(refusedParameters(), "alg", "kid", "typ") }

// refusedParameters name a key, extend what a token means, or say that the
// claims are something else than claims. A token with one of them is refused,
// whatever its value: to ignore it may be to misread the token, and to follow it
// is to let a stranger choose the key.
func refusedParameters() []string {
	return []string{"crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64", "zip", "cty"}
}

func (c *compactToken) readHeader(data []byte) error {
	o, err := parseObject(data, headerParameters()...)
	if err != nil {
		return fmt.Errorf("has a header that is %w", err)
	}
	for _, name := range refusedParameters() {
		if _, ok := o[name]; ok {
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

// validKID reports whether kid is a name we give keys or look keys up by.
func validKID(kid string) bool {
	return kid != "" && len(kid) <= maxKIDBytes &&
		!strings.ContainsFunc(kid, func(r rune) bool { return r < ' ' || r > '~' })
}

// verifySignature checks the signature with the key. The header's algorithm must be the
// key's; it does not choose how the signature is checked.
func (c *compactToken) verifySignature(k *verifyKey) error {
	if c.alg != k.method.Alg() {
		return errors.New("has another algorithm in its header than its key has")
	}
	if err := k.method.Verify(c.signed, c.signature, k.key); err != nil {
		return errors.New("has a signature that does not hold")
	}
	return nil
}

// jsonObject is a JSON object of somebody else's: its members by name, each valid
// JSON.
type jsonObject map[string]json.RawMessage

// parseObject reads exactly one object, in which no two names are alike or
// differ only by case, neither from each other nor from a known one: of such
// names two readers take different ones.
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
	if simple { // as nearly always
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

// hasCase reports whether r may differ by case from what is no capital letter of
// ASCII: names without such runes differ by more when they differ.
func hasCase(r rune) bool { return 'A' <= r && r <= 'Z' || r > unicode.MaxASCII }

// foldName returns the same for two names exactly when strings.EqualFold takes
// them for equal.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// stringMember returns a member that is a string, "" when it is absent. null is no
// string.
func (o jsonObject) stringMember(name string) (string, error) {
	raw, ok := o[name]
	if !ok {
		return "", nil
	}
	var s string
	err := strictjson.Unmarshal(raw, &s)
	return s, err
}
