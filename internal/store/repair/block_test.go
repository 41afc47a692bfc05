package repair

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// append adds a record in the engine's format. The tests that damage its files
// cover the engine's own records.
func (b *block) append(seq uint64, subject, headers, data string) (begin int) {
	begin = len(b.data)
	length := uint32(recordHead + len(subject) + len(data) + recordHash)
	if headers != "" {
		length = (length + uint32(4+len(headers))) | lengthHasHeaders
	}
	rec := binary.LittleEndian.AppendUint32(nil, length)
	rec = binary.LittleEndian.AppendUint64(rec, seq)
	rec = binary.LittleEndian.AppendUint64(rec, 1_700_000_000)
	rec = binary.LittleEndian.AppendUint16(rec, uint16(len(subject)))
	rec = append(rec, subject...)
	if headers != "" {
		rec = binary.LittleEndian.AppendUint32(rec, uint32(len(headers)))
	}
	rec = append(rec, headers...)
	rec = append(rec, data...)
	b.hash.Reset()
	_, _ = b.hash.Write(rec[4:20])
	_, _ = b.hash.Write([]byte(subject + headers + data))
	b.data = append(b.data, b.hash.Sum(rec)...)
	return begin
}

func emptyBlock(t interface{ Fatal(...any) }) *block {
	b, err := newBlock("LOG", "", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFindDamage_KeepsIntactRecords changes random bytes of some records, and
// finds all others.
func TestFindDamage_KeepsIntactRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := emptyBlock(t)
		n := rapid.IntRange(1, 30).Draw(t, "records")
		begins := []int{}
		for i := range n {
			headers := rapid.SampledFrom([]string{"", "NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n"}).Draw(t, "headers")
			text := fmt.Sprintf(`{"n":%d,"text":%q}`, i, rapid.StringN(0, 60, 200).Draw(t, "text"))
			begins = append(begins, b.append(uint64(i+1), "log.a", headers, text))
		}
		begins = append(begins, len(b.data))
		whole := bytes.Clone(b.data)
		hit := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(3, n), rapid.ID[int]).Draw(t, "damaged")
		for _, i := range hit {
			// Exclude the lengths, which no hash covers: the tests with the
			// engine's files damage them.
			at := rapid.IntRange(begins[i]+4, begins[i]+19).Draw(t, "at")
			b.data[at] ^= rapid.ByteRange(1, 255).Draw(t, "with")
		}
		var want []byte
		for i := range n {
			if !slices.Contains(hit, i) {
				want = append(want, whole[begins[i]:begins[i+1]]...)
			}
		}
		if got := b.withoutRanges(b.findDamage()); !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes without the damage, want %d", len(got), len(want))
		}
	})
}

func TestFindDamage_ReportsDamagedRanges(t *testing.T) {
	const id = "NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n"
	for _, tt := range []struct {
		name   string
		change func(b *block, second int)
		want   []damagedRange // end is the file size if given, begin is not compared
	}{
		{"whole", func(*block, int) {}, nil},
		{"empty", func(b *block, _ int) { b.data = nil }, nil},
		{"compressed by the engine", func(b *block, _ int) { b.data = []byte("cmp\x01 data") }, nil},
		{"data", func(b *block, at int) { b.data[at+70] ^= 1 }, []damagedRange{{after: 1, before: 3, claimedSeq: 2}}},
		{"length", func(b *block, at int) { b.data[at+1] ^= 1 }, []damagedRange{{after: 1, before: 3, claimedSeq: 2}}},
		{"length of the headers", func(b *block, at int) { b.data[at+recordHead+5] ^= 1 }, []damagedRange{{after: 1, before: 3, claimedSeq: 2}}},
		{"sequence", func(b *block, at int) { b.data[at+4] ^= 1 }, []damagedRange{{after: 1, before: 3, claimedSeq: 3}}},
		{"first and last", func(b *block, _ int) { b.data[30] ^= 1; b.data[len(b.data)-1] ^= 1 }, []damagedRange{
			{before: 2, claimedSeq: 1},
			{after: 2, claimedSeq: 3},
		}},
		{"cut short", func(b *block, at int) { b.data = b.data[:at+10] }, []damagedRange{{after: 1}}},
		{"a mark of a deletion", func(b *block, _ int) { b.append(2|sequenceDeleted, "", "", "") }, nil},
		{"an erased message", func(b *block, _ int) { b.append(4|sequenceErased, "log.a", "", "xxxxx") }, nil},
		{"the same again", func(b *block, _ int) { b.append(3, "log.a", "", "again") }, nil},
		{"a mark of a deletion behind damage", func(b *block, _ int) {
			b.data[len(b.data)-1] ^= 1
			b.append(1|sequenceDeleted, "", "", "")
		}, []damagedRange{{after: 2, claimedSeq: 3, end: recordHead + 5 + 4 + len(id) + len("the third") + recordHash}}},
		{"an old one behind damage", func(b *block, _ int) {
			b.data = append(b.data, "garbage"...)
			b.append(2, "log.a", "", "old")
		}, []damagedRange{{after: 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := emptyBlock(t)
			b.append(1, "log.a", id, "the first")
			second := b.append(2, "log.a", id, "the second, which is longer")
			b.append(3, "log.a", id, "the third")
			tt.change(b, second)
			got := b.findDamage()
			if len(got) != len(tt.want) {
				t.Fatalf("got holes %+v, want %+v", got, tt.want)
			}
			for i, h := range got {
				h.begin, h.end = 0, h.end-h.begin
				if tt.want[i].end == 0 {
					h.end = 0
				}
				if tt.want[i].claimedSeq == 0 {
					h.claimedSeq = 0
				}
				if h != tt.want[i] {
					t.Errorf("got hole %+v, want %+v", h, tt.want[i])
				}
			}
		})
	}
}

func FuzzFindDamage(f *testing.F) {
	b := emptyBlock(f)
	b.append(1, "log.a", "", "one")
	b.append(2, "log.a", "NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n", "two")
	f.Add(b.data)
	f.Add(b.data[:len(b.data)-1])
	f.Add([]byte(nil))
	f.Add(bytes.Repeat([]byte{0}, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := newBlock("LOG", "", 1, data)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, h := range b.findDamage() {
			if h.begin < at || h.end <= h.begin || h.end > len(data) || h.before != 0 && h.before <= h.after {
				t.Fatalf("hole %+v in %d bytes, behind %d", h, len(data), at)
			}
			at = h.end
		}
		if !bytes.HasPrefix(data, compressed) {
			b.data = b.withoutRanges(b.findDamage())
			if again := b.findDamage(); len(again) != 0 {
				t.Fatalf("what is mended has holes again: %+v", again)
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(_ *testing.T, data []byte) { parseIndex(data) })
}
