package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

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
