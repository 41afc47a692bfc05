package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

type (
	digest  [sha256.Size]byte
	chainID [16]byte // random, of a chain's beginning: two chains never mix
)

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// The bounds of what one message holds.
const (
	maxBatch      = 256       // records of callers in one message
	maxBatchBytes = 512 << 10 // their bytes, as encoded
	maxEntries    = maxBatch + 8
	maxInline     = 400 << 10 // a longer content gets messages of its own
	maxPart       = 512 << 10 // of which this is the largest
	maxParts      = MaxContentSize/maxPart + 1
)

// batch is one message of the chain.
//
//	"CRA1" · chain · writer · number · first · prev · count ·
//	  ( facts · content · hash ) × count
//
// Numbers are varints, texts stand behind their length, hashes are 32 bytes.
// Nothing of it is optional and nothing has two spellings.
type batch struct {
	chain   chainID
	writer  string
	number  uint64 // from 1, without gaps
	first   uint64 // position of the first record; from 1, without gaps
	prev    digest // hash of the record before the first
	entries []entry

	seq uint64 // of the message it was read from
}

type entry struct {
	facts   []byte
	content content
	hash    digest // as stored; link says what it must be
}

// contentState says where the content of an entry is.
type contentState byte

const (
	contentNone  contentState = iota // there never was one
	contentHere                      // beside the entry
	contentApart                     // in messages of its own
	contentGone                      // erased or expired; its hash stays
	contentStates
)

type content struct {
	state contentState
	hash  digest
	nonce [16]byte // as long as the content is there
	data  []byte   // here
	parts []uint64 // apart: sequences of the messages
}

const (
	magic      = "CRA1"
	entryLabel = "caprouter/audit/entry/1\x00"
)

// link computes the hash of entry i behind prev. It covers where the entry
// stands (chain, writer, batch, position), what it follows, its facts, and the
// hash of its content; so not where the content is, or whether it still is.
func (b *batch) link(i int, prev digest, scratch []byte) (digest, []byte) {
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

// seal computes all hashes of the batch.
func (b *batch) seal() {
	prev, scratch := b.prev, []byte(nil)
	for i := range b.entries {
		b.entries[i].hash, scratch = b.link(i, prev, scratch)
		prev = b.entries[i].hash
	}
}

// broken returns the first entry whose hash is not what it must be, -1 when all
// are right.
func (b *batch) broken() int {
	prev, scratch := b.prev, []byte(nil)
	for i := range b.entries {
		var want digest
		if want, scratch = b.link(i, prev, scratch); want != b.entries[i].hash {
			return i
		}
		prev = want
	}
	return -1
}

// hash is that of the last record: what the next batch follows.
func (b *batch) hash() digest { return b.entries[len(b.entries)-1].hash }

// last is the position of the last record.
func (b *batch) last() uint64 { return b.first + uint64(len(b.entries)) - 1 }

func (b *batch) mark() *ChainPosition {
	return &ChainPosition{Batch: b.number, Record: b.last(), Hash: b.hash().String()}
}

// hasContent reports whether any content is still there.
func (b *batch) hasContent() bool {
	for i := range b.entries {
		if s := b.entries[i].content.state; s == contentHere || s == contentApart {
			return true
		}
	}
	return false
}

// strip takes the content of entry i away and returns the messages that held
// parts of it.
func (b *batch) strip(i int) []uint64 {
	c := &b.entries[i].content
	if c.state == contentNone {
		return nil
	}
	parts := c.parts
	*c = content{state: contentGone, hash: c.hash}
	return parts
}

// size is an upper bound of what the entry takes in a message.
func (e *entry) size() int {
	return len(e.facts) + len(e.content.data) + len(e.content.parts)*binary.MaxVarintLen64 + 128
}

// encode returns the message.
func (b *batch) encode() []byte {
	size := 160 + len(b.writer)
	for i := range b.entries {
		size += b.entries[i].size()
	}
	out := append(make([]byte, 0, size), magic...)
	out = append(out, b.chain[:]...)
	out = binary.AppendUvarint(out, uint64(len(b.writer)))
	out = append(out, b.writer...)
	out = binary.AppendUvarint(out, b.number)
	out = binary.AppendUvarint(out, b.first)
	out = append(out, b.prev[:]...)
	out = binary.AppendUvarint(out, uint64(len(b.entries)))
	for i := range b.entries {
		out = b.entries[i].encode(out)
	}
	return out
}

func (e *entry) encode(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(e.facts)))
	out = append(out, e.facts...)
	c := &e.content
	out = append(out, byte(c.state))
	if c.state != contentNone {
		out = append(out, c.hash[:]...)
	}
	switch c.state {
	case contentHere:
		out = append(out, c.nonce[:]...)
		out = binary.AppendUvarint(out, uint64(len(c.data)))
		out = append(out, c.data...)
	case contentApart:
		out = append(out, c.nonce[:]...)
		out = binary.AppendUvarint(out, uint64(len(c.parts)))
		for _, seq := range c.parts {
			out = binary.AppendUvarint(out, seq)
		}
	}
	return append(out, e.hash[:]...)
}
