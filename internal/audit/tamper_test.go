package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
)

// want lists the expected problems: only of this kind, and with all or any of these batches.
type want struct {
	what    string
	batches []uint64
	any     bool     // one of batches is enough
	others  []uint64 // may be reported as well
	record  uint64   // 0 = any
}

// tampering changes a chain without announcing it.
type tampering struct {
	name string
	do   func(c *chain, other *chain, rng *rand.Rand) want
}

// middle returns the index of a message that is neither the first nor the last.
func middle(c *chain, rng *rand.Rand) int { return 1 + rng.IntN(len(c.messages)-2) }

func tamperings() []tampering {
	return []tampering{
		{"bit flipped", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			n := c.read(i).number
			data := bytes.Clone(c.messages[i].Data)
			bit := rng.IntN(8 * len(data))
			data[bit/8] ^= 1 << (bit % 8)
			c.messages[i].Data = data
			return want{what: ProblemAltered, batches: []uint64{n}}
		}},
		{"fact changed", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			b := c.read(i)
			k := rng.IntN(len(b.entries))
			b.entries[k].facts = bytes.Replace(b.entries[k].facts, []byte(`"ana"`), []byte(`"eve"`), 1)
			c.messages[i].Data = b.encodeBatch()
			return want{what: ProblemAltered, batches: []uint64{b.number}, record: b.first + uint64(k)}
		}},
		{"fact changed and batch sealed again", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			b := c.read(i)
			k := rng.IntN(len(b.entries))
			b.entries[k].facts = bytes.Replace(b.entries[k].facts, []byte(`"ana"`), []byte(`"eve"`), 1)
			b.computeHashes()
			c.messages[i].Data = b.encodeBatch()
			return want{what: ProblemAltered, batches: []uint64{b.number}}
		}},
		{"fact changed and later hashes recomputed", func(c, _ *chain, rng *rand.Rand) want {
			from := rng.IntN(len(c.messages))
			var prev digest
			for i := from; i < len(c.messages); i++ {
				b := c.read(i)
				if i == from {
					b.entries[0].facts = bytes.Replace(b.entries[0].facts, []byte(`"ana"`), []byte(`"eve"`), 1)
				} else {
					b.prev = prev
				}
				b.computeHashes()
				prev = b.lastHash()
				c.messages[i].Data = b.encodeBatch()
			}
			return want{what: ProblemAltered, batches: []uint64{c.end.number}}
		}},
		{"content changed", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			b := c.read(i)
			k := rng.IntN(len(b.entries))
			data := bytes.Clone(b.entries[k].content.data)
			data[rng.IntN(len(data))] ^= 1
			b.entries[k].content.data = data
			c.messages[i].Data = b.encodeBatch()
			return want{what: ProblemAltered, batches: []uint64{b.number}, record: b.first + uint64(k)}
		}},
		{"contents swapped", func(c, _ *chain, rng *rand.Rand) want {
			i, k := rng.IntN(len(c.messages)), rng.IntN(len(c.messages))
			a, b := c.read(i), c.read(k)
			if i == k {
				b = a
			}
			x, y := &a.entries[0].content, &b.entries[1].content
			x.data, y.data = y.data, x.data
			x.nonce, y.nonce = y.nonce, x.nonce
			c.messages[i].Data, c.messages[k].Data = a.encodeBatch(), b.encodeBatch()
			return want{what: ProblemAltered, batches: []uint64{a.number, b.number}}
		}},
		{"content removed", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			b := c.read(i)
			k := rng.IntN(len(b.entries))
			b.removeContent(k)
			if rng.IntN(2) == 0 {
				c.append(newChainSubjects(DefaultWriter).rewritten+fmt.Sprint(b.number), b)
				c.messages = slices.Delete(c.messages, i, i+1)
			} else {
				c.messages[i].Data = b.encodeBatch()
			}
			return want{what: ProblemDeleted, batches: []uint64{b.number}, record: b.first + uint64(k)}
		}},
		{"records removed from a batch", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			b := c.read(i)
			b.entries = b.entries[:len(b.entries)-1]
			c.messages[i].Data = b.encodeBatch()
			return want{what: ProblemAltered, batches: []uint64{b.number}}
		}},
		{"message truncated", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			n := c.read(i).number
			c.messages[i].Data = c.messages[i].Data[:rng.IntN(len(c.messages[i].Data))]
			return want{what: ProblemAltered, batches: []uint64{n}}
		}},
		{"batches deleted", func(c, _ *chain, rng *rand.Rand) want {
			i := middle(c, rng)
			n := c.read(i).number
			c.messages = slices.Delete(c.messages, i, i+1+rng.IntN(len(c.messages)-1-i))
			return want{what: ProblemDeleted, batches: []uint64{n}}
		}},
		{"start deleted", func(c, _ *chain, rng *rand.Rand) want {
			c.messages = c.messages[middle(c, rng):]
			return want{what: ProblemDeleted, batches: []uint64{1}}
		}},
		{"end deleted", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			n := c.read(i).number
			c.messages = c.messages[:i]
			return want{what: ProblemTruncated, batches: []uint64{n}}
		}},
		{"messages swapped", func(c, _ *chain, rng *rand.Rand) want {
			i, k := rng.IntN(len(c.messages)), rng.IntN(len(c.messages)-1)
			if k >= i {
				k++
			}
			a, b := c.read(i).number, c.read(k).number
			c.messages[i].Data, c.messages[k].Data = c.messages[k].Data, c.messages[i].Data
			w := want{what: ProblemReordered, batches: []uint64{a, b}, any: true}
			// In "c b a", any of them may be reported as correct.
			for n := min(a, b) + 1; n < max(a, b) && max(a, b)-min(a, b) == 2; n++ {
				w.others = append(w.others, n)
			}
			return w
		}},
		{"message moved to the subject of rewritten batches", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			m, n := c.messages[i], c.read(i).number
			m.Subject = newChainSubjects(DefaultWriter).rewritten + fmt.Sprint(n)
			c.messages = slices.Insert(slices.Delete(c.messages, i, i+1), rng.IntN(len(c.messages)), m)
			renumber(c)
			return want{what: ProblemReordered, batches: []uint64{n}}
		}},
		{"message duplicated", func(c, _ *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			n := c.read(i).number
			at := rng.IntN(len(c.messages) + 1)
			c.messages = slices.Insert(c.messages, at, c.messages[i])
			renumber(c)
			return want{what: ProblemDuplicated, batches: []uint64{n}}
		}},
		{"batches replaced by those of another chain", func(c, other *chain, rng *rand.Rand) want {
			i := rng.IntN(len(c.messages))
			n := 1 + rng.IntN(len(c.messages)-i)
			var batches []uint64
			for k := i; k < i+n; k++ {
				batches = append(batches, c.read(k).number)
				c.messages[k].Data = other.messages[k].Data
			}
			return want{what: ProblemForged, batches: batches}
		}},
		{"end of another chain appended", func(c, other *chain, rng *rand.Rand) want {
			n := 1 + rng.IntN(3)
			w := want{what: ProblemForged}
			for i := len(other.messages) - n; i < len(other.messages); i++ {
				w.batches = append(w.batches, other.read(i).number)
				c.messages = append(c.messages, other.messages[i])
			}
			renumber(c)
			return w
		}},
		{"batch inserted", func(c, _ *chain, rng *rand.Rand) want {
			i := middle(c, rng)
			b := c.read(i)
			b.entries[0].facts = bytes.Replace(b.entries[0].facts, []byte(`"ana"`), []byte(`"eve"`), 1)
			b.computeHashes()
			c.messages = slices.Insert(c.messages, i, store.Message{Subject: c.messages[i].Subject, Data: b.encodeBatch()})
			renumber(c)
			return want{what: ProblemForged, batches: []uint64{b.number}}
		}},
	}
}

func renumber(c *chain) {
	for i := range c.messages {
		c.messages[i].Seq = uint64(i + 1)
	}
}

// check compares the report with the expected problems.
func (w want) check(report *Report) error {
	var found []uint64
	for _, p := range report.Problems {
		if p.Kind != w.what {
			return fmt.Errorf("got %q among the problems, want only %q", p, w.what)
		}
		found = append(found, p.Batch)
	}
	hits := 0
	for _, n := range w.batches {
		if slices.Contains(found, n) {
			hits++
		}
	}
	if hits == 0 || !w.any && hits < len(w.batches) {
		return fmt.Errorf("got %s of batches %d, want %d", w.what, found, w.batches)
	}
	for _, n := range found {
		if !slices.Contains(w.batches, n) && !slices.Contains(w.others, n) {
			return fmt.Errorf("got %s of batches %d, want only %d", w.what, found, w.batches)
		}
	}
	if w.record != 0 && report.Problems[0].Record != w.record {
		return fmt.Errorf("got %q, want record %d", report.Problems[0], w.record)
	}
	return nil
}

// Each of a thousand chains is changed in one way: each change is reported.
func TestVerify_ReportsTampering(t *testing.T) {
	ways := tamperings()
	named := 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		way := ways[int(seed)%len(ways)]
		size := 3 + rng.IntN(20)
		c, other := newChain(t, 1), newChain(t, 2)
		c.grow(rng, size)
		other.grow(rng, size)
		if clean := verify(c.messages, c.head(), headTrusted); !clean.OK() || clean.Batches != uint64(size) {
			t.Fatalf("seed %d: got %d batches and problems %v before the change", seed, clean.Batches, clean.Problems)
		}
		h := c.head()
		w := way.do(c, other, rng)
		if err := w.check(verify(c.messages, h, headTrusted)); err != nil {
			t.Errorf("seed %d: %s: %v", seed, way.name, err)
			continue
		}
		named++
	}
	if named != 1000 {
		t.Errorf("got %d of 1000 problems located correctly", named)
	}
}

// Two changes never result in a chain that verifies.
func TestVerify_ReportsRepeatedTampering(t *testing.T) {
	ways := tamperings()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		c, other := newChain(t, 1), newChain(t, 2)
		c.grow(rng, 12)
		other.grow(rng, 12)
		h, before := c.head(), slices.Clone(c.messages)
		first := ways[rng.IntN(len(ways))]
		first.do(c, other, rng)
		second := ways[rng.IntN(len(ways))]
		if !applicable(c) || len(c.messages) > len(other.messages) {
			continue // the first change removed the target of the second one
		}
		second.do(c, other, rng)
		same := slices.EqualFunc(before, c.messages, func(a, b store.Message) bool { return bytes.Equal(a.Data, b.Data) })
		if report := verify(c.messages, h, headTrusted); report.OK() && !same {
			t.Errorf("seed %d: got no problem after %q and %q", seed, first.name, second.name)
		}
	}
}

// applicable reports whether the chain is long enough for another change.
func applicable(c *chain) bool {
	for _, m := range c.messages {
		if b, err := decodeMessage(m); err != nil || len(b.entries) < 2 {
			return false
		}
	}
	return len(c.messages) >= 3
}
