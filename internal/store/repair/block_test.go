package repair

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// append appends a record in the format of the engine, and returns its offset. Tests of package
// store damage records that the engine wrote.
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

// Random bytes of some records are changed. All other records are kept.
func TestFindDamage_KeepsIntactRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := emptyBlock(t)
		n := rapid.IntRange(1, 30).Draw(t, "records")
		offsets := []int{}
		for i := range n {
			headers := rapid.SampledFrom([]string{"", "NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n"}).Draw(t, "headers")
			text := fmt.Sprintf(`{"n":%d,"text":%q}`, i, rapid.StringN(0, 60, 200).Draw(t, "text"))
			offsets = append(offsets, b.append(uint64(i+1), "log.a", headers, text))
		}
		offsets = append(offsets, len(b.data))
		intact := bytes.Clone(b.data)
		damaged := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(3, n), rapid.ID[int]).Draw(t, "damaged")
		for _, i := range damaged {
			// Exclude the record lengths, because no hash covers them. Tests of package store
			// damage them.
			at := rapid.IntRange(offsets[i]+4, offsets[i]+19).Draw(t, "at")
			b.data[at] ^= rapid.ByteRange(1, 255).Draw(t, "with")
		}
		var want []byte
		for i := range n {
			if !slices.Contains(damaged, i) {
				want = append(want, intact[offsets[i]:offsets[i+1]]...)
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
		want   []damagedRange // end is the size of the range, 0 = any; begin and a claimedSeq of 0 are not compared
	}{
		{"intact", func(*block, int) {}, nil},
		{"empty", func(b *block, _ int) { b.data = nil }, nil},
		{"compressed by the engine", func(b *block, _ int) { b.data = []byte("cmp\x01 data") }, nil},
		{"data", func(b *block, at int) { b.data[at+70] ^= 1 }, []damagedRange{{after: 1, before: 3, claimedSeq: 2}}},
		{"length", func(b *block, at int) { b.data[at+1] ^= 1 }, []damagedRange{{after: 1, before: 3, claimedSeq: 2}}},
		{"header length", func(b *block, at int) { b.data[at+recordHead+5] ^= 1 }, []damagedRange{{after: 1, before: 3, claimedSeq: 2}}},
		{"sequence", func(b *block, at int) { b.data[at+4] ^= 1 }, []damagedRange{{after: 1, before: 3, claimedSeq: 3}}},
		{"first and last", func(b *block, _ int) { b.data[30] ^= 1; b.data[len(b.data)-1] ^= 1 }, []damagedRange{
			{before: 2, claimedSeq: 1},
			{after: 2, claimedSeq: 3},
		}},
		{"truncated", func(b *block, at int) { b.data = b.data[:at+10] }, []damagedRange{{after: 1}}},
		{"delete marker", func(b *block, _ int) { b.append(2|sequenceDeleted, "", "", "") }, nil},
		{"erased message", func(b *block, _ int) { b.append(4|sequenceErased, "log.a", "", "xxxxx") }, nil},
		{"duplicate sequence", func(b *block, _ int) { b.append(3, "log.a", "", "again") }, nil},
		{"delete marker after damage", func(b *block, _ int) {
			b.data[len(b.data)-1] ^= 1
			b.append(1|sequenceDeleted, "", "", "")
		}, []damagedRange{{after: 2, claimedSeq: 3, end: recordHead + 5 + 4 + len(id) + len("the third") + recordHash}}},
		{"older sequence after damage", func(b *block, _ int) {
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
				t.Fatalf("got damage %+v, want %+v", got, tt.want)
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
					t.Errorf("got damaged range %+v, want %+v", h, tt.want[i])
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
				t.Fatalf("got damaged range %+v in %d bytes, want it after offset %d and in order", h, len(data), at)
			}
			at = h.end
		}
		if !bytes.HasPrefix(data, compressed) {
			b.data = b.withoutRanges(b.findDamage())
			if again := b.findDamage(); len(again) != 0 {
				t.Fatalf("got damage %+v without the damaged ranges, want none", again)
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(_ *testing.T, data []byte) { parseIndex(data) })
}
