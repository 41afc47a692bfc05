package llm

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const redacted = "<redacted>"

// Secret is a key that cannot be printed by accident: every verb, JSON, text
// and slog show <redacted>, or nothing where there is none. The value is behind
// a pointer, because fmt calls no methods of a field it may not read and would
// print the string.
type Secret struct{ value *string }

// NewSecret wraps a key. White space around it, such as the line break of the
// file it was read from, is no part of it.
func NewSecret(key string) Secret {
	key = strings.TrimSpace(key)
	if key == "" {
		return Secret{}
	}
	return Secret{value: &key}
}

// IsSet reports whether there is a key.
func (s Secret) IsSet() bool { return s.value != nil }

// Reveal returns the key. It belongs in a header and nowhere else.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// fitsHeader reports whether the key can be sent in a header: net/http would
// refuse it with each request, and no key has such characters.
func (s Secret) fitsHeader() bool {
	return !strings.ContainsFunc(s.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' })
}

// String returns <redacted>, or "" without a key.
func (s Secret) String() string {
	if s.value == nil {
		return ""
	}
	return redacted
}

// Format prints String for every verb, %#v and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText makes JSON, YAML and text of it String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue makes a log show String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
