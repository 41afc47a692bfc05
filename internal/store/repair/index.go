package repair

import (
	"bytes"
	"encoding/binary"
)

// The engine's index of a stream.
const (
	indexFile    = "index.db"
	indexMagic   = 11 // its first byte
	indexVersion = 4  // newest known version, in its second byte
)

// streamIndex is the used part of the engine's index of a stream.
type streamIndex struct {
	last  uint64 // the last sequence
	check []byte // the last bytes of the newest block
}

// parseIndex decodes an index; the zero value if it is invalid.
func parseIndex(data []byte) streamIndex {
	const hashed, least = 8, 32
	if len(data) < least {
		return streamIndex{}
	}
	if data[0] != indexMagic || data[1] < 1 || data[1] > indexVersion {
		return streamIndex{} // of another engine, which this one does not use either
	}
	x := streamIndex{check: data[len(data)-hashed-recordHash : len(data)-hashed]}
	rest := data[2:] // without kind and version
	for _, field := range []*uint64{nil, nil, nil, nil, &x.last} {
		// Messages, bytes, first sequence, its time, last sequence. The time is
		// signed, and has the same length as if it were unsigned.
		value, n := binary.Uvarint(rest)
		if n <= 0 {
			return streamIndex{}
		}
		if rest = rest[n:]; field != nil {
			*field = value
		}
	}
	return x
}

// matchesBlock reports whether the engine will use the index, given the newest
// block.
func (x streamIndex) matchesBlock(newest []byte) bool {
	return len(newest) >= recordHash && bytes.HasSuffix(newest, x.check) && len(x.check) > 0
}
