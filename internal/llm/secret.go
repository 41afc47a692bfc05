package llm

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const redacted = "<redacted>"

// Secret is a key that cannot be printed by accident: fmt, JSON, text and slog
// show <redacted>, or nothing if it is empty. The value is behind a pointer,
// because fmt prints unexported string fields without calling methods.
type Secret struct{ value *string }

// NewSecret returns a Secret without surrounding white space, such as a line
// break from a file.
func NewSecret(key string) Secret {
	key = strings.TrimSpace(key)
	if key == "" {
		return Secret{}
	}
	return Secret{value: &key}
}

// IsSet reports whether the key is not empty.
func (s Secret) IsSet() bool { return s.value != nil }

// Reveal returns the key. Use it only in a header.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// isValidHeader reports whether the key is valid in a header. net/http would
// reject other keys in each request.
func (s Secret) isValidHeader() bool {
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

// MarshalText returns String, for JSON, YAML and text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
