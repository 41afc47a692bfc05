package strictjwt

import (
	"errors"
	"fmt"
	"strings"
)

// latestDate is the end of the year 9999, in seconds since 1970.
const latestDate = 253402300799

// claimNames returns the claims that are read from every token. The name of the
// tenant claim depends on the key.
func claimNames() []string {
	return []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope"}
}

// Claims are the claims of a token as the parser decodes them: numbers as jsonNumber,
// lists as []any. The dates and lists that jwt.MapClaims returns are not used: a claim of
// another type is an empty list there, and 1e400 is a date.
//
// Errors of methods follow the words "the token".
type Claims map[string]any

// jsonNumber is the text of a number. Float64 returns an error if it is out of range.
type jsonNumber interface{ Float64() (float64, error) }

// Text returns a claim that is a text, "" if it is absent. null is not a text.
func (m Claims) Text(claim string) (s string, ok bool) {
	value, found := m[claim]
	if !found {
		return "", true
	}
	s, ok = value.(string)
	return s, ok
}

// List returns a claim that is a list of texts.
func (m Claims) List(claim string) (texts []string, ok bool) {
	values, ok := m[claim].([]any)
	for _, value := range values {
		s, isText := value.(string)
		texts, ok = append(texts, s), ok && isText
	}
	return texts, ok
}

// Name returns a claim that identifies a principal.
func (m Claims) Name(claim string) (string, error) {
	s, ok := m.Text(claim)
	if !ok || s == "" || CheckName(s) != nil {
		return "", fmt.Errorf("has no %s that is a string of 1 to %d bytes without control characters", claim, MaxNameBytes)
	}
	return s, nil
}

// Audience returns the single audience, a string or a list of one. A token with several
// audiences is rejected, because another of them could use it here.
func (m Claims) Audience() (string, error) {
	audience, ok := m.Text("aud")
	if list, isList := m.List("aud"); isList && len(list) == 1 {
		audience, ok = list[0], true
	}
	if !ok || audience == "" {
		return "", errors.New("has no aud that is one string")
	}
	return audience, nil
}

// Date returns a claim that is a number of seconds since 1970, without its fraction (RFC
// 7519, section 2).
func (m Claims) Date(claim string) (int64, error) {
	if number, ok := m[claim].(jsonNumber); ok {
		if n, err := number.Float64(); err == nil && n >= 1 && n <= latestDate {
			return int64(n), nil
		}
	}
	return 0, fmt.Errorf("has no %s that is a number of seconds since 1970", claim)
}

// Scopes returns the scopes of a claim that is a text, none if it is empty (RFC 6749,
// section 3.3).
func (m Claims) Scopes(claim string) ([]string, error) {
	s, ok := m.Text(claim)
	if !ok {
		return nil, errors.New("has a scope that is not a string")
	}
	if s == "" {
		return nil, nil
	}
	scopes := strings.Split(s, " ")
	for _, scope := range scopes {
		if !ValidScope(scope) {
			return nil, errors.New("has a scope that is not words of printable ASCII with one space between them")
		}
	}
	return scopes, nil
}

// CheckSpelling returns an error if a claim has the name in another case.
func (m Claims) CheckSpelling(claim string) error {
	for name := range m {
		if name != claim && strings.EqualFold(name, claim) {
			return fmt.Errorf("has a claim %s that is spelled in another case", claim)
		}
	}
	return nil
}
