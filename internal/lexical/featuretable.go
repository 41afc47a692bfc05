package lexical

import "math/bits"

// A feature is identified by a 32-bit hash of its text and kind. Among 100,000
// features about one pair collides, which costs the precision of a weight and
// not a wrong answer. The seeds keep the kinds apart.
const (
	seedWord uint32 = 0x811c9dc5
	seedPair uint32 = 0x9e3779b1
	seedStem uint32 = 0x7feb352d
	seedGram uint32 = 0x846ca68b
	seedText uint32 = 0x27d4eb2f

	hashPrime uint32 = 0x01000193 // FNV-1a
)

// hashBytes continues an FNV-1a hash with the bytes.
func hashBytes(h uint32, b []byte) uint32 {
	for _, c := range b {
		h = (h ^ uint32(c)) * hashPrime
	}
	return h
}

// mixHash spreads an FNV hash over all bits (the finalizer of MurmurHash3),
// because featureTable indexes by the low bits.
func mixHash(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// featureTable maps the hash of a feature to its number. It uses open
// addressing with linear probing, so that a lookup touches one cache line and
// no strings are stored.
type featureTable struct {
	slots []tableSlot
	mask  uint32
	size  int
}

type tableSlot struct {
	hash   uint32
	number uint32 // + 1; 0 is an empty slot
}

// newFeatureTable returns a table that holds n features without growing.
func newFeatureTable(n int) featureTable {
	size := 1 << bits.Len(uint(max(n, 4)*3/2))
	return featureTable{slots: make([]tableSlot, size), mask: uint32(size - 1)}
}

// lookup returns the feature's number, or -1.
func (t *featureTable) lookup(hash uint32) int32 {
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		s := t.slots[at]
		if s.number == 0 {
			return -1
		}
		if s.hash == hash {
			return int32(s.number) - 1
		}
	}
}

// insert returns the feature's number, the next free one if the feature is new.
func (t *featureTable) insert(hash uint32) int32 {
	if 4*t.size >= 3*len(t.slots) {
		t.growSlots()
	}
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		s := &t.slots[at]
		if s.number == 0 {
			t.size++
			*s = tableSlot{hash: hash, number: uint32(t.size)}
			return int32(t.size) - 1
		}
		if s.hash == hash {
			return int32(s.number) - 1
		}
	}
}

// shrinkToFit returns a copy of the smallest size that is still fast to search.
func (t *featureTable) shrinkToFit() featureTable {
	size := 8
	for 5*size < 6*t.size {
		size *= 2
	}
	f := featureTable{slots: make([]tableSlot, size), mask: uint32(size - 1)}
	for _, s := range t.slots {
		if s.number != 0 {
			f.putSlot(s)
		}
	}
	return f
}

func (t *featureTable) growSlots() {
	old := t.slots
	*t = newFeatureTable(len(old))
	for _, s := range old {
		if s.number != 0 {
			t.putSlot(s)
		}
	}
}

func (t *featureTable) putSlot(s tableSlot) {
	at := s.hash & t.mask
	for t.slots[at].number != 0 {
		at = (at + 1) & t.mask
	}
	t.slots[at] = s
	t.size++
}
