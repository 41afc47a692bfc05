package audit

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/internal/store"
)

var errBatch = errors.New("not a batch of the trail")

// decodeBatch reads a message. It takes exactly what encode writes. The batch
// shares its memory with data. Hashes are not looked at: see broken.
func decodeBatch(data []byte) (*batch, error) {
	r := reader{rest: data}
	if string(r.take(len(magic))) != magic {
		return nil, fmt.Errorf("%w: it does not begin as one", errBatch)
	}
	b := &batch{}
	copy(b.chain[:], r.take(len(b.chain)))
	b.writer = string(r.text(maxWriter))
	b.number = r.number()
	b.first = r.number()
	copy(b.prev[:], r.take(len(b.prev)))
	count := r.number()
	switch {
	case r.failed:
	case b.number == 0, b.first == 0, count == 0, count > maxEntries, b.first+count < b.first:
		r.failed = true
	default:
		b.entries = make([]entry, count)
		for i := range b.entries {
			r.entry(&b.entries[i])
		}
	}
	if r.failed || len(r.rest) > 0 {
		return nil, fmt.Errorf("%w: damaged %d bytes before its end", errBatch, len(r.rest))
	}
	return b, nil
}

// open is decodeBatch for a message of the log.
func open(m store.Message) (*batch, error) {
	b, err := decodeBatch(m.Data)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	b.seq = m.Seq
	return b, nil
}

// readable is open for those who go on without a damaged message: Verify names
// it.
func readable(m store.Message) (*batch, bool) {
	b, err := open(m)
	return b, err == nil
}

// reader takes a message apart. After the first thing that is not as it must be
// it yields zero values and stays failed.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed || n > len(r.rest) {
		r.failed = true
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

// number reads a varint in its shortest spelling.
func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if r.failed || n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) text(limit int) []byte {
	n := r.number()
	if n > uint64(limit) {
		r.failed = true
	}
	if r.failed {
		return nil
	}
	return r.take(int(n))
}

func (r *reader) entry(e *entry) {
	e.facts = r.text(maxFacts)
	c := &e.content
	if state := r.take(1); !r.failed {
		c.state = contentState(state[0])
	}
	if c.state >= contentStates {
		r.failed = true
	}
	if c.state != contentNone {
		copy(c.hash[:], r.take(len(c.hash)))
	}
	switch c.state {
	case contentHere:
		copy(c.nonce[:], r.take(len(c.nonce)))
		c.data = r.text(maxInline)
	case contentApart:
		copy(c.nonce[:], r.take(len(c.nonce)))
		n := r.number()
		if n == 0 || n > maxParts {
			r.failed = true
			return
		}
		c.parts = make([]uint64, n)
		for i := range c.parts {
			c.parts[i] = r.number()
		}
	}
	copy(e.hash[:], r.take(len(e.hash)))
}
