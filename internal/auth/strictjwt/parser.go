package strictjwt

import (
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// Key verifies the signatures of tokens. The algorithm belongs to the key: the header of a
// token must match it and selects nothing.
type Key struct {
	Algorithm string // one of Algorithms
	Material  any    // ed25519.PublicKey, *ecdsa.PublicKey, *rsa.PublicKey or the bytes of a secret
}

// KeyFunc returns the key that must have signed a token. The header and the claims are not
// verified, so they may only narrow the search.
type KeyFunc func(*Header, Claims) (Key, error)

// Parser verifies the form and the signature of tokens. It is safe for concurrent use.
type Parser struct{ parser *jwt.Parser }

// NewParser returns a Parser. It keeps numbers as they are, because as float64 a number
// like 1e400 is an error, also in a claim that is ignored. It does not validate the claims:
// its callers have stricter rules, for example no clock skew for exp and one audience.
func NewParser() *Parser {
	return &Parser{jwt.NewParser(jwt.WithValidMethods(Algorithms()), jwt.WithStrictDecoding(),
		jwt.WithJSONNumber(), jwt.WithoutClaimsValidation())}
}

// Parse returns the claims of a token that the key has signed. Errors follow the words "the
// token", and contain no part of it; an error of find is returned as it is.
//
// First come the checks that need no key and that the library does not make: it accepts
// line breaks in base64, text behind the claims, the last of two equal names and every
// header parameter. Then the library decodes the claims and verifies the signature.
func (p *Parser) Parse(token string, find KeyFunc) (Claims, error) {
	c, err := parseCompact(token)
	if err != nil {
		return nil, err
	}
	if _, err := parseObject(c.payload, claimNames()...); err != nil {
		return nil, fmt.Errorf("has claims that are %w", err)
	}
	claims := Claims{}
	var rejected error
	_, err = p.parser.ParseWithClaims(token, jwt.MapClaims(claims), func(*jwt.Token) (any, error) {
		var key Key
		if key, rejected = find(&c.header, claims); rejected == nil {
			rejected = key.checkAlgorithm(&c.header)
		}
		return key.Material, rejected
	})
	switch {
	case rejected != nil: // the library adds its own text to it
		return nil, rejected
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return nil, errors.New("has an invalid signature")
	case err != nil:
		return nil, errors.New("has a header that cannot be decoded")
	}
	return claims, nil
}

// checkAlgorithm returns an error unless the algorithm of the header is that of the key:
// the header does not select how a signature is verified.
func (k *Key) checkAlgorithm(h *Header) error {
	if h.Algorithm != k.Algorithm {
		return errors.New("has another algorithm in its header than its key has")
	}
	return nil
}
