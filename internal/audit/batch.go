package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/internal/store"
)

type (
	digest  [sha256.Size]byte
	chainID [16]byte // random, so that two chains cannot be mixed
)

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// Limits of one message.
const (
	maxBatch      = 256       // records of callers
	maxBatchBytes = 512 << 10 // encoded size of those that close the chain of another replica
	batchTarget   = 96 << 10  // encoded size from which no further queued record is added
	maxEntries    = maxBatch + 8
	maxInline     = 400 << 10                    // a larger content gets messages of its own
	maxPart       = 512 << 10                    // size of these messages
	maxParts      = 2*MaxContentSize/maxPart + 2 // Content and Answer
)

// batch is one message of the chain.
//
//	"CRA1" · chain · writer · number · first · prev · count ·
//	  ( facts · content · hash ) × count
//
// Numbers are varints, texts follow their length, hashes have 32 bytes. Nothing is
// optional, and every batch has exactly one encoding.
type batch struct {
	chain   chainID
	writer  string
	number  uint64 // from 1, without gaps
	first   uint64 // position of the first record; from 1, without gaps
	prev    digest // hash of the record before the first
	entries []batchEntry

	seq       uint64 // of its message; 0 = not read from the stream
	rewritten bool   // the message is not the first one of this batch
	origin    uint64 // sequence of the first one; 0 = not known
}

type batchEntry struct {
	facts   []byte
	content entryContent
	hash    digest // as stored; computeHash returns the right one
}

// contentState is the place of an entry's content.
type contentState byte

const (
	contentNone     contentState = iota // no content
	contentInline                       // in the batch
	contentSeparate                     // in separate messages
	contentRemoved                      // erased or expired; the hash stays
	contentStates
)

type entryContent struct {
	state contentState
	hash  digest
	nonce [16]byte // zero if the content is removed
	data  []byte   // if inline
	parts []uint64 // sequences of the separate messages
}

// isStored reports whether there is a content that was not removed.
func (c *entryContent) isStored() bool {
	return c.state == contentInline || c.state == contentSeparate
}

const (
	batchMagic = "CRA1"
	entryLabel = "caprouter/audit/entry/1\x00"
)

// computeHash returns the hash of entry i behind prev. It covers the place of the
// entry (chain, writer, batch, position), the hash before it, its facts and the hash
// of its content, but not whether the content is still stored.
func (b *batch) computeHash(i int, prev digest, scratch []byte) (digest, []byte) {
	e := &b.entries[i]
	s := append(scratch[:0], entryLabel...)
	s = append(s, b.chain[:]...)
	s = binary.AppendUvarint(s, uint64(len(b.writer)))
	s = append(s, b.writer...)
	s = binary.BigEndian.AppendUint64(s, b.number)
	s = binary.BigEndian.AppendUint64(s, b.first+uint64(i))
	s = append(s, prev[:]...)
	if e.content.state == contentNone {
		s = append(s, 0)
	} else {
		s = append(s, 1)
		s = append(s, e.content.hash[:]...)
	}
	s = append(s, e.facts...)
	return sha256.Sum256(s), s
}

// computeHashes sets the hashes of all entries.
func (b *batch) computeHashes() {
	prev, scratch := b.prev, []byte(nil)
	for i := range b.entries {
		b.entries[i].hash, scratch = b.computeHash(i, prev, scratch)
		prev = b.entries[i].hash
	}
}

// firstInvalid returns the first entry with a wrong hash, or -1.
func (b *batch) firstInvalid() int {
	prev, scratch := b.prev, []byte(nil)
	for i := range b.entries {
		var want digest
		if want, scratch = b.computeHash(i, prev, scratch); want != b.entries[i].hash {
			return i
		}
		prev = want
	}
	return -1
}

// lastHash is the hash of the last record, which the next batch names as prev.
func (b *batch) lastHash() digest { return b.entries[len(b.entries)-1].hash }

func (b *batch) lastPosition() uint64 { return b.first + uint64(len(b.entries)) - 1 }

// end returns the end of a chain whose last batch this is.
func (b *batch) end(seq uint64) chainEnd {
	return chainEnd{chain: b.chain, number: b.number, last: b.lastPosition(), hash: b.lastHash(), seq: seq, origin: max(b.origin, seq)}
}

func (b *batch) endPosition() *ChainPosition {
	return &ChainPosition{Batch: b.number, Record: b.lastPosition(), Hash: b.lastHash().String()}
}

// hasContent reports whether any content is still stored.
func (b *batch) hasContent() bool {
	for i := range b.entries {
		if b.entries[i].content.isStored() {
			return true
		}
	}
	return false
}

// streamSize returns about how many bytes the stream stores for a batch whose message has
// this length, separate contents included.
func (b *batch) streamSize(message int) int64 {
	size := int64(message) + messageOverhead
	for i := range b.entries {
		if c := &b.entries[i].content; c.state == contentSeparate {
			size += c.storedSize()
		}
	}
	return size
}

// removeContent removes the content of entry i and returns the messages with its
// parts.
func (b *batch) removeContent(i int) []uint64 {
	c := &b.entries[i].content
	if c.state == contentNone {
		return nil
	}
	parts := c.parts
	*c = entryContent{state: contentRemoved, hash: c.hash}
	return parts
}

// encodedSize returns an upper bound of the entry's size in a message.
func (e *batchEntry) encodedSize() int {
	return len(e.facts) + len(e.content.data) + len(e.content.parts)*binary.MaxVarintLen64 + 128
}

func (b *batch) encodeBatch() []byte {
	size := 160 + len(b.writer)
	for i := range b.entries {
		size += b.entries[i].encodedSize()
	}
	out := append(make([]byte, 0, size), batchMagic...)
	out = append(out, b.chain[:]...)
	out = binary.AppendUvarint(out, uint64(len(b.writer)))
	out = append(out, b.writer...)
	out = binary.AppendUvarint(out, b.number)
	out = binary.AppendUvarint(out, b.first)
	out = append(out, b.prev[:]...)
	out = binary.AppendUvarint(out, uint64(len(b.entries)))
	for i := range b.entries {
		out = b.entries[i].appendTo(out)
	}
	return out
}

func (e *batchEntry) appendTo(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(e.facts)))
	out = append(out, e.facts...)
	c := &e.content
	out = append(out, byte(c.state))
	if c.state != contentNone {
		out = append(out, c.hash[:]...)
	}
	switch c.state {
	case contentInline:
		out = append(out, c.nonce[:]...)
		out = binary.AppendUvarint(out, uint64(len(c.data)))
		out = append(out, c.data...)
	case contentSeparate:
		out = append(out, c.nonce[:]...)
		out = binary.AppendUvarint(out, uint64(len(c.parts)))
		for _, seq := range c.parts {
			out = binary.AppendUvarint(out, seq)
		}
	}
	return append(out, e.hash[:]...)
}

var errInvalidBatch = errors.New("invalid batch")

// decodeBatch decodes exactly what encodeBatch returns. The batch shares memory with
// data. Hashes are not checked: see firstInvalid.
func decodeBatch(data []byte) (*batch, error) {
	r := batchDecoder{rest: data}
	if string(r.readBytes(len(batchMagic))) != batchMagic {
		return nil, fmt.Errorf("%w: wrong magic number", errInvalidBatch)
	}
	b := &batch{}
	copy(b.chain[:], r.readBytes(len(b.chain)))
	b.writer = string(r.readText(maxWriter))
	b.number = r.readUvarint()
	b.first = r.readUvarint()
	copy(b.prev[:], r.readBytes(len(b.prev)))
	count := r.readUvarint()
	switch {
	case r.failed:
	case b.number == 0, b.first == 0, count == 0, count > maxEntries, b.first+count < b.first:
		r.failed = true
	default:
		b.entries = make([]batchEntry, count)
		for i := range b.entries {
			r.readEntry(&b.entries[i])
		}
	}
	if r.failed || len(r.rest) > 0 {
		return nil, fmt.Errorf("%w: damaged %d bytes before the end", errInvalidBatch, len(r.rest))
	}
	return b, nil
}

func decodeMessage(m store.Message) (*batch, error) {
	b, err := decodeBatch(m.Data)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	b.seq, b.origin = m.Seq, m.Seq
	if _, number := writerOf(m.Subject); number != 0 {
		b.rewritten, b.origin = true, m.Origin
	}
	return b, nil
}

// tryDecode reports false for a damaged message, which readers skip and Verify
// reports.
func tryDecode(m store.Message) (*batch, bool) {
	b, err := decodeMessage(m)
	return b, err == nil
}

// batchDecoder decodes a message. After the first error it returns zero values and
// stays failed.
type batchDecoder struct {
	rest   []byte
	failed bool
}

func (r *batchDecoder) readBytes(n int) []byte {
	if r.failed || n > len(r.rest) {
		r.failed = true
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

// readUvarint reads a varint in its shortest encoding.
func (r *batchDecoder) readUvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if r.failed || n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *batchDecoder) readText(limit int) []byte {
	n := r.readUvarint()
	if n > uint64(limit) {
		r.failed = true
	}
	if r.failed {
		return nil
	}
	return r.readBytes(int(n))
}

func (r *batchDecoder) readEntry(e *batchEntry) {
	e.facts = r.readText(maxFacts)
	c := &e.content
	if state := r.readBytes(1); !r.failed {
		c.state = contentState(state[0])
	}
	if c.state >= contentStates {
		r.failed = true
	}
	if c.state != contentNone {
		copy(c.hash[:], r.readBytes(len(c.hash)))
	}
	switch c.state {
	case contentInline:
		copy(c.nonce[:], r.readBytes(len(c.nonce)))
		c.data = r.readText(maxInline)
	case contentSeparate:
		copy(c.nonce[:], r.readBytes(len(c.nonce)))
		n := r.readUvarint()
		if n == 0 || n > maxParts {
			r.failed = true
			return
		}
		c.parts = make([]uint64, n)
		for i := range c.parts {
			c.parts[i] = r.readUvarint()
		}
	}
	copy(e.hash[:], r.readBytes(len(e.hash)))
}
