package feature

import "math/bits"

// Table maps the hash of a feature to its number. It uses open
// addressing with linear probing, so that a lookup touches one cache line and
// no strings are stored.
type Table struct {
	Entries []Entry // their number is a power of two
	Size    int     // number of features
	mask    uint32
}

// Entry is an entry of a Table.
type Entry struct {
	Hash   uint32
	Number uint32 // + 1; 0 is an empty entry
}

// NewTable returns a table that holds n features without growing.
func NewTable(n int) Table {
	size := 1 << bits.Len(uint(max(n, 4)*3/2))
	return Table{Entries: make([]Entry, size), mask: uint32(size - 1)}
}

// Lookup returns the feature's number, or -1.
func (t *Table) Lookup(hash uint32) int32 {
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		s := t.Entries[at]
		if s.Number == 0 {
			return -1
		}
		if s.Hash == hash {
			return int32(s.Number) - 1
		}
	}
}

// Contains reports whether there is a feature with the hash.
func (t *Table) Contains(hash uint32) bool { return t.Lookup(hash) >= 0 }

// Insert returns the feature's number, the next free one if the feature is new.
func (t *Table) Insert(hash uint32) int32 {
	if 4*t.Size >= 3*len(t.Entries) {
		t.growEntries()
	}
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		s := &t.Entries[at]
		if s.Number == 0 {
			t.Size++
			*s = Entry{Hash: hash, Number: uint32(t.Size)}
			return int32(t.Size) - 1
		}
		if s.Hash == hash {
			return int32(s.Number) - 1
		}
	}
}

// ShrinkToFit returns a copy of the smallest size that is still fast to search.
func (t *Table) ShrinkToFit() Table {
	size := 8
	for 5*size < 6*t.Size {
		size *= 2
	}
	f := Table{Entries: make([]Entry, size), mask: uint32(size - 1)}
	for _, s := range t.Entries {
		if s.Number != 0 {
			f.putEntry(s)
		}
	}
	return f
}

func (t *Table) growEntries() {
	old := t.Entries
	*t = NewTable(len(old))
	for _, s := range old {
		if s.Number != 0 {
			t.putEntry(s)
		}
	}
}

func (t *Table) putEntry(s Entry) {
	at := s.Hash & t.mask
	for t.Entries[at].Number != 0 {
		at = (at + 1) & t.mask
	}
	t.Entries[at] = s
	t.Size++
}

// RestoreTable returns the table with the given entries, a power of two, and number of features.
func RestoreTable(entries []Entry, size int) Table {
	return Table{Entries: entries, mask: uint32(len(entries) - 1), Size: size}
}
