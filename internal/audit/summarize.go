package audit

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// batchSummary is the part of one message that verifying needs: about 200 bytes,
// without texts except the ids of requests whose content was removed.
type batchSummary struct {
	seq          uint64
	rewritten    bool   // of a subject for rewritten batches
	number       uint64 // as encoded; of a rewritten one, as in the subject
	valid        bool   // decodable, and every hash is right
	readable     bool
	chain        chainID
	first        uint64
	last         uint64
	prev         digest
	hash         digest
	firstInvalid uint64 // position of the first record with a wrong hash
	from, to     time.Time

	contents uint64           // intact
	altered  []uint64         // positions of contents with a wrong hash
	removed  []removedContent // contents that are not stored
	notes    []Record
}

// removedContent is a content that is not stored.
type removedContent struct {
	pos     uint64
	request string
	owner   quota.Owner
	at      time.Time
}

// chainReader reads and summarizes messages, in any order. One goroutine owns it.
type chainReader struct {
	writer   string
	subjects chainSubjects
	// part reads a message with a part of a content.
	part     func(seq uint64) ([]byte, error)
	messages []*batchSummary
	// signedUpTo is the last batch of a head that was read after the messages; 0 = none.
	signedUpTo uint64
	// maxUnsigned is the time that the batches behind the newest head may span.
	maxUnsigned time.Duration
}

func newChainReader(writer string, part func(seq uint64) ([]byte, error)) *chainReader {
	return &chainReader{writer: writer, subjects: newChainSubjects(writer), part: part, maxUnsigned: maxUnsigned}
}

// addMessage summarizes one message.
func (x *chainReader) addMessage(m store.Message) {
	e := &batchSummary{seq: m.Seq}
	number := ""
	switch {
	case m.Subject == x.subjects.chain:
	case strings.HasPrefix(m.Subject, x.subjects.rewritten):
		e.rewritten, number = true, m.Subject[len(x.subjects.rewritten):]
	case strings.HasPrefix(m.Subject, x.subjects.withoutContents):
		e.rewritten, number = true, m.Subject[len(x.subjects.withoutContents):]
	default:
		return // a part of a content, or another chain
	}
	x.messages = append(x.messages, e)
	b, err := decodeBatch(m.Data)
	if err == nil {
		x.summarizeBatch(e, b)
	}
	if e.rewritten {
		claimed := e.number
		e.number, err = strconv.ParseUint(number, 10, 64)
		e.valid = e.valid && err == nil && e.number == claimed
	}
}

func (x *chainReader) summarizeBatch(e *batchSummary, b *batch) {
	e.readable = true
	e.chain, e.number, e.first, e.last, e.prev, e.hash = b.chain, b.number, b.first, b.lastPosition(), b.prev, b.lastHash()
	i := b.firstInvalid()
	e.valid = i < 0 && b.writer == x.writer
	e.firstInvalid = b.first + uint64(max(i, 0))
	for i := range b.entries {
		rec, err := b.decodeRecord(i)
		if err != nil {
			e.valid = false
			continue
		}
		if i == 0 {
			e.from = rec.At
		}
		e.to = rec.At
		if rec.Kind == KindAdmin {
			e.notes = append(e.notes, *rec)
		}
		x.checkContent(e, &b.entries[i].content, rec)
	}
}

// checkContent compares a content with its hash.
func (x *chainReader) checkContent(e *batchSummary, c *entryContent, rec *Record) {
	data := c.data
	switch c.state {
	case contentNone:
		return
	case contentSeparate:
		data = data[:0:0]
		for _, seq := range c.parts {
			part, err := x.part(seq)
			if err != nil {
				e.removed = append(e.removed, removedContent{rec.Position, rec.RequestID, ownerOf(rec), rec.At})
				return
			}
			data = append(data, part...)
		}
	case contentRemoved:
		e.removed = append(e.removed, removedContent{rec.Position, rec.RequestID, ownerOf(rec), rec.At})
		return
	}
	if c.computeHash(data) != c.hash {
		e.altered = append(e.altered, rec.Position)
		return
	}
	e.contents++
}

// mainChain returns the chain to verify: that of the head, or else the most frequent
// one.
func (x *chainReader) mainChain(h *chainHead) chainID {
	if h != nil {
		if p, err := h.signedEnd(); err == nil {
			return p.chain
		}
	}
	count := map[chainID]int{}
	var best chainID
	for _, e := range x.messages {
		if e.valid {
			if count[e.chain]++; count[e.chain] > count[best] {
				best = e.chain
			}
		}
	}
	return best
}

// hexDigest returns the digest of a text that was checked before.
func hexDigest(text string) (d digest) {
	raw, _ := hex.DecodeString(text)
	copy(d[:], raw)
	return d
}
