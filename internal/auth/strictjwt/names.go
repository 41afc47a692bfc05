package strictjwt

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxNameBytes bounds the names in a token, because they are part of the logs and
	// records of every request.
	MaxNameBytes = 256
	// MaxKeyIDBytes bounds the kid.
	MaxKeyIDBytes = 256
)

// CheckName returns an error if the name of a principal, a tenant or a claim is too long
// or contains control characters. The name may be empty.
func CheckName(s string) error {
	switch {
	case len(s) > MaxNameBytes:
		return fmt.Errorf("is longer than %d bytes", MaxNameBytes)
	case !utf8.ValidString(s):
		return errors.New("is not UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("has control characters")
	}
	return nil
}

// ValidScope reports whether s is a scope-token of RFC 6749, section 3.3.
func ValidScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// ValidKeyID reports whether kid is a valid kid of a header.
func ValidKeyID(kid string) bool {
	return kid != "" && len(kid) <= MaxKeyIDBytes &&
		!strings.ContainsFunc(kid, func(r rune) bool { return r < ' ' || r > '~' })
}
