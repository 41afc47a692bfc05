package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// exported lets cmp compare the unexported types of the format.
var exported = cmp.AllowUnexported(batch{}, batchEntry{}, entryContent{})

// drawBatch returns a random batch.
func drawBatch(t *rapid.T) *batch {
	b := &batch{
		writer: rapid.StringMatching(`[a-z]{1,64}`).Draw(t, "writer"),
		number: rapid.Uint64Range(1, 1<<40).Draw(t, "number"),
		first:  rapid.Uint64Range(1, 1<<40).Draw(t, "first"),
	}
	copy(b.chain[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "chain"))
	for range rapid.IntRange(1, 8).Draw(t, "entries") {
		e := batchEntry{facts: rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "facts")}
		switch state := contentState(rapid.IntRange(0, 3).Draw(t, "state")); state {
		case contentInline, contentSeparate:
			e.content = newContent(rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "content"))
			if state == contentSeparate {
				e.content.state, e.content.data = contentSeparate, nil
				e.content.parts = rapid.SliceOfN(rapid.Uint64(), 1, maxParts).Draw(t, "parts")
			}
		case contentRemoved:
			e.content = entryContent{state: contentRemoved, hash: digest{1}}
		}
		b.entries = append(b.entries, e)
	}
	b.computeHashes()
	return b
}

func TestBatch_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawBatch(t)
		data := want.encodeBatch()
		got, err := decodeBatch(data)
		if diff := cmp.Diff(want, got, exported); err != nil || diff != "" {
			t.Fatalf("error %v, batch (-want +got):\n%s", err, diff)
		}
		if i := got.firstInvalid(); i >= 0 {
			t.Fatalf("got entry %d invalid, want all valid", i)
		}
		for n := range got.entries {
			size := got.entries[n].encodedSize()
			if used := len(got.entries[n].appendTo(nil)); used > size {
				t.Fatalf("entry %d: got %d bytes, want at most %d", n, used, size)
			}
		}
	})
}

// The hash covers the position and the facts of an entry, but not the location of its content.
func TestComputeHash_CoversEveryField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		i := rapid.IntRange(0, len(b.entries)-1).Draw(t, "entry")
		e := &b.entries[i]
		covered := true
		switch rapid.IntRange(0, 8).Draw(t, "change") {
		case 0:
			b.chain[3]++
		case 1:
			b.writer += "x"
		case 2:
			b.number++
		case 3:
			b.first++
		case 4:
			b.prev[7]++
		case 5:
			e.facts = append(bytes.Clone(e.facts), 0)
		case 6:
			if e.content.hash[0]++; e.content.state == contentNone {
				e.content.state = contentRemoved
			}
		case 7:
			b.removeContent(i)
			covered = false
		case 8:
			e.content.parts = append(e.content.parts, 1)
			covered = false
		}
		if got := b.firstInvalid() >= 0; got != covered {
			t.Fatalf("got hash changed %t, want %t", got, covered)
		}
	})
}

func TestDecodeBatch_RejectsDamage(t *testing.T) {
	valid := func() *batch {
		b := &batch{writer: "main", number: 1, first: 1, entries: []batchEntry{{facts: []byte("{}")}}}
		b.computeHashes()
		return b
	}
	changed := func(change func(*batch)) []byte {
		b := valid()
		change(b)
		return b.encodeBatch()
	}
	tests := []struct {
		name string
		data []byte
	}{
		{"nothing", nil},
		{"other magic", append([]byte("CRA2"), valid().encodeBatch()[4:]...)},
		{"trailing data", append(valid().encodeBatch(), 0)},
		{"cut short", valid().encodeBatch()[:len(valid().encodeBatch())-1]},
		{"number 0", changed(func(b *batch) { b.number = 0 })},
		{"position 0", changed(func(b *batch) { b.first = 0 })},
		{"no entries", changed(func(b *batch) { b.entries = nil })},
		{"too many entries", changed(func(b *batch) { b.entries = make([]batchEntry, maxEntries+1) })},
		{"positions overflow", changed(func(b *batch) { b.first = 1<<64 - 1 })},
		{"unknown state", changed(func(b *batch) { b.entries[0].content.state = contentStates })},
		{"writer too long", changed(func(b *batch) { b.writer = string(make([]byte, maxWriter+1)) })},
		{"too many facts", changed(func(b *batch) { b.entries[0].facts = make([]byte, maxFacts+1) })},
		{"content too long", changed(func(b *batch) { b.entries[0].content = newContent(make([]byte, maxInline+1)) })},
		{"content without parts", changed(func(b *batch) { b.entries[0].content.state = contentSeparate })},
		{"content in too many parts", changed(func(b *batch) {
			b.entries[0].content = entryContent{state: contentSeparate, parts: make([]uint64, maxParts+1)}
		})},
		{"non-minimal number", bytes.Replace(valid().encodeBatch(), []byte("\x04main\x01"), []byte("\x04main\x81\x00"), 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if b, err := decodeBatch(tt.data); !errors.Is(err, errInvalidBatch) {
				t.Errorf("got batch %+v, error %v, want %v", b, err, errInvalidBatch)
			}
		})
	}
}

// FuzzDecodeBatch checks that no input panics or uses much memory, and that a decoded batch has
// only one encoding.
func FuzzDecodeBatch(f *testing.F) {
	c := newChain(f, 1)
	c.add(decisionOf(epoch(), 1), outcomeOf(epoch(), 1))
	c.admin(EventErase, uuid7(epoch(), 1), nil)
	c.admin(EventCheckpoint, "", &ChainPosition{Batch: 1, Record: 2, Hash: digest{}.String()})
	for _, m := range c.messages {
		f.Add(m.Data)
		f.Add(m.Data[:len(m.Data)/2])
	}
	bare := c.read(0)
	bare.removeContent(0)
	bare.entries[1].content.state, bare.entries[1].content.parts = contentSeparate, []uint64{1, 1 << 50}
	f.Add(bare.encodeBatch())
	f.Add(binary.AppendUvarint([]byte(batchMagic), 1<<63))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := decodeBatch(data)
		if err != nil {
			return
		}
		if again := b.encodeBatch(); !bytes.Equal(again, data) {
			t.Errorf("got %x decoded, and encoded as %x", data, again)
		}
		_ = b.firstInvalid()
		for i := range b.entries {
			_, _ = b.decodeRecord(i)
		}
		x := newChainReader(DefaultWriter, func(uint64) ([]byte, error) { return nil, errInvalidBatch })
		m := c.messages[0]
		m.Data = data
		x.addMessage(m)
		x.buildReport(c.head(), headTrusted)
	})
}

func TestHeadFile_KeepsLastValidHead(t *testing.T) {
	path := filepath.Join(t.TempDir(), HeadFile)
	headOf := func(n uint64) *chainHead {
		p := chainEnd{chain: chainID{1}, number: n, last: 2 * n, hash: digest{byte(n)}}
		h := p.newHead(DefaultWriter, epoch())
		return &h
	}
	read := func(signer Signer) (uint64, headStatus) {
		h, _, how, err := readHead(path, signer)
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			return 0, how
		}
		return h.Batch, how
	}
	check := func(what string, signer Signer, batch uint64, how headStatus) {
		t.Helper()
		if gotBatch, gotHow := read(signer); gotBatch != batch || gotHow != how {
			t.Errorf("%s: got batch %d, trust %d, want batch %d, trust %d", what, gotBatch, gotHow, batch, how)
		}
	}
	check("no file", testKey, 0, headAbsent)
	f, err := openHeadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.file.Close()
	check("an empty file", testKey, 0, headAbsent)
	for n := range uint64(5) {
		if err := f.writeHead(headOf(n+1), testKey); err != nil {
			t.Fatal(err)
		}
		check("written", testKey, n+1, headTrusted)
	}
	check("another key", key("two"), 5, headUnknownKey)

	// If the process dies during a write, one slot is torn, and the other one is used.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(append([]byte(`{"head":"{\"writer\":\"ma`), whole[24:]...))
	check("torn in the newer slot", testKey, 4, headTrusted)
	write(whole[:slotSize/2])
	check("cut to the newer slot", testKey, 5, headTrusted)
	write(bytes.ReplaceAll(whole, []byte(`\"batch\":`), []byte(`\"batch\":9`)))
	if _, how := read(testKey); how != headInvalid {
		t.Errorf("with other numbers: got trust %d, want %d", how, headInvalid)
	}
	write(bytes.Repeat([]byte("nonsense"), 3000))
	check("nonsense", testKey, 0, headInvalid)
}

// FuzzHead checks that no input panics, and that no head without a valid signature is accepted.
func FuzzHead(f *testing.F) {
	path := filepath.Join(f.TempDir(), HeadFile)
	file, err := openHeadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	defer file.file.Close()
	// The key is not random, so that every worker of the fuzzer signs the same data.
	want := (&chainEnd{chain: chainID{1}, number: 1, last: 2, hash: digest{3}, seq: 4}).newHead(DefaultWriter, epoch())
	if err := file.writeHead(&want, testKey); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(bytes.Replace(good, []byte("1"), []byte("2"), 1))
	f.Add([]byte(`{"head":"{}","key_id":"","signature":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, _, how := chooseHead(data, testKey)
		if how == headTrusted && !cmp.Equal(*h, want) {
			t.Errorf("got head %+v accepted, want only the signed %+v", *h, want)
		}
	})
}
