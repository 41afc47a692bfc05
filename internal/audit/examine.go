package audit

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// examined is what is kept of one message while a chain is verified: about 200
// bytes, and nothing of its texts but the ids of requests whose content is gone.
type examined struct {
	seq       uint64
	rewritten bool   // of restated or bare
	number    uint64 // as claimed; of a rewritten one, by its subject
	whole     bool   // it can be read, and every hash is that of what it says
	readable  bool
	chain     chainID
	first     uint64
	last      uint64
	prev      digest
	hash      digest
	broken    uint64 // position of the first record that is not whole
	from, to  time.Time

	contents uint64    // that are there and right
	altered  []uint64  // positions of contents that are not what they were
	gone     []missing // contents that are not there
	notes    []Record  // admin records
}

// missing is a content that is not there.
type missing struct {
	pos     uint64
	request string
	at      time.Time
}

// examiner reads messages one by one, and judges them when all are read.
type examiner struct {
	writer   string
	subjects subjects
	// part reads a message of a content that lies apart.
	part     func(seq uint64) ([]byte, error)
	messages []*examined
}

func newExaminer(writer string, part func(seq uint64) ([]byte, error)) *examiner {
	return &examiner{writer: writer, subjects: subjectsOf(writer), part: part}
}

// add looks at one message. The order of calls does not matter.
func (x *examiner) add(m store.Message) {
	e := &examined{seq: m.Seq}
	number := ""
	switch {
	case m.Subject == x.subjects.chain:
	case strings.HasPrefix(m.Subject, x.subjects.restated):
		e.rewritten, number = true, m.Subject[len(x.subjects.restated):]
	case strings.HasPrefix(m.Subject, x.subjects.bare):
		e.rewritten, number = true, m.Subject[len(x.subjects.bare):]
	default:
		return // a part of a content, or of another chain
	}
	x.messages = append(x.messages, e)
	b, err := decodeBatch(m.Data)
	if err == nil {
		x.examine(e, b)
	}
	if e.rewritten {
		claimed := e.number
		e.number, err = strconv.ParseUint(number, 10, 64)
		e.whole = e.whole && err == nil && e.number == claimed
	}
}

func (x *examiner) examine(e *examined, b *batch) {
	e.readable = true
	e.chain, e.number, e.first, e.last, e.prev, e.hash = b.chain, b.number, b.first, b.last(), b.prev, b.hash()
	i := b.broken()
	e.whole = i < 0 && b.writer == x.writer
	e.broken = b.first + uint64(max(i, 0))
	for i := range b.entries {
		rec, err := b.record(i)
		if err != nil {
			e.whole = false
			continue
		}
		if i == 0 {
			e.from = rec.At
		}
		e.to = rec.At
		if rec.Kind == KindAdmin {
			e.notes = append(e.notes, *rec)
		}
		x.content(e, &b.entries[i].content, rec)
	}
}

// content compares a content with its hash.
func (x *examiner) content(e *examined, c *content, rec *Record) {
	data := c.data
	switch c.state {
	case contentNone:
		return
	case contentApart:
		data = data[:0:0]
		for _, seq := range c.parts {
			part, err := x.part(seq)
			if err != nil {
				e.gone = append(e.gone, missing{rec.Position, rec.RequestID, rec.At})
				return
			}
			data = append(data, part...)
		}
	case contentGone:
		e.gone = append(e.gone, missing{rec.Position, rec.RequestID, rec.At})
		return
	}
	if c.sum(data) != c.hash {
		e.altered = append(e.altered, rec.Position)
		return
	}
	e.contents++
}

// mainChain is the chain that is verified: the head's, else the one most of the
// messages are of.
func (x *examiner) mainChain(h *head) chainID {
	if h != nil {
		if p, err := h.place(); err == nil {
			return p.chain
		}
	}
	count := map[chainID]int{}
	var best chainID
	for _, e := range x.messages {
		if e.whole {
			if count[e.chain]++; count[e.chain] > count[best] {
				best = e.chain
			}
		}
	}
	return best
}

func hexDigest(text string) (d digest, ok bool) {
	raw, err := hex.DecodeString(text)
	return d, err == nil && copy(d[:], raw) == len(d) && len(raw) == len(d)
}
