package router

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// NewID returns a UUIDv7 (RFC 9562 §5.7) for a request, a decision or a task.
func NewID() string {
	// NewV7 fails only if the random source of the system does, and then
	// crypto/rand has ended the process already.
	id := uuid.Must(uuid.NewV7())
	// If the clock is set back, the library continues from its latest time. Records are found
	// by the time in the id, so it must be that of the clock, by which they are stored.
	now := time.Now()
	if at := time.Unix(id.Time().UnixTime()); at.Sub(now) > maxIDLead {
		var ms [8]byte
		binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
		copy(id[:6], ms[2:])
	}
	return id.String()
}

// maxIDLead is how far an id may be ahead of the clock: many ids of one millisecond are
// counted up.
const maxIDLead = time.Second
