package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

// validKey matches parts of letters, digits, - _ and =, joined by dots.
var validKey = regexp.MustCompile(`^[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*$`)

const maxKeyLength = 512

func checkKey(key string) error {
	if len(key) > maxKeyLength || !validKey.MatchString(key) {
		return fmt.Errorf("key %.80q: want at most %d of A-Z a-z 0-9 _ - = in parts joined by dots", key, maxKeyLength)
	}
	return nil
}

// MaxIDLength is the maximum length of an id, in bytes.
const MaxIDLength = 128

// ValidID reports whether an id that a client sent can be a part of a key or of a subject: 1
// to MaxIDLength letters, digits, hyphens and underscores. It contains no separator and no
// wildcard.
func ValidID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return id != "" && len(id) <= MaxIDLength
}

// HashKey returns the hex SHA-256 of the parts for use in a key, because keys must
// not contain arbitrary characters. Lengths are hashed too, so that {"a", "bc"} and
// {"ab", "c"} differ.
func HashKey(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
