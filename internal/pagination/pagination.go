// Package pagination divides lists that are ordered by time, newest first, into pages. A
// cursor is the position of the last entry of a page, so that an entry which is added
// between two pages does not move the others.
package pagination

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Numbers of entries in a page.
const (
	DefaultSize = 100
	MaxSize     = 1000
)

const maxID = 128 // bytes

// Size returns the number of entries in a page for a limit of a query, where 0 is the
// default. The error for a limit out of range is a *contract.Error.
func Size(limit int) (int, error) {
	switch {
	case limit == 0:
		return DefaultSize, nil
	case limit < 0, limit > MaxSize:
		return 0, contract.InvalidRequest("/limit", fmt.Sprintf("must be from 1 to %d", MaxSize))
	}
	return limit, nil
}

// Position is the place of an entry in a list. The zero value is before all entries.
type Position struct {
	Created time.Time
	ID      string // breaks the tie of entries that were created at the same time
}

// Compare returns a negative number if p is before q, which is the newer of the two.
func (p Position) Compare(q Position) int {
	return cmp.Or(q.Created.Compare(p.Created), cmp.Compare(q.ID, p.ID))
}

// Before reports whether p is before q. The zero position is before every other one.
func (p Position) Before(q Position) bool {
	return p == Position{} || p.Compare(q) < 0
}

// Cursor returns the text from which ParseCursor restores the position.
func (p Position) Cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.Created.Format(time.RFC3339Nano) + " " + p.ID))
}

// ParseCursor returns the position of a cursor, and the zero position for an empty text. The
// error for any other text is a *contract.Error.
func ParseCursor(text string) (Position, error) {
	if text == "" {
		return Position{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, _ := strings.Cut(string(raw), " ")
	created, badTime := time.Parse(time.RFC3339Nano, at)
	if err != nil || badTime != nil || id == "" || len(id) > maxID {
		return Position{}, contract.InvalidRequest("/cursor", "is not a cursor of an earlier page")
	}
	return Position{Created: created, ID: id}, nil
}
