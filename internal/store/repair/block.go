package repair

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/minio/highwayhash"
)

// The engine stores the messages of a stream in blocks: files of consecutive
// records, each with a hash.
//
//	length 4 │ sequence 8 │ time 8 │ subject length 2 │ subject │ [header length 4 │ headers] │ data │ hash 8
//	└ bit 31: it has headers
//	             └ bit 63: it was erased; bit 62: it marks the deletion of a message
//
// The key of the hash is made of the names of stream and block. It covers everything
// except the lengths.
const (
	recordHead = 22
	recordHash = 8
	maxRecord  = 32 << 20

	lengthHasHeaders = 1 << 31
	sequenceErased   = 1 << 63
	sequenceDeleted  = 1 << 62
)

// compressed is the prefix of a compressed block. The engine never compresses our
// blocks.
var compressed = []byte("cmp")

// block is one file of records.
type block struct {
	path   string
	number int
	data   []byte
	hash   hash.Hash64
}

func newBlock(stream, path string, number int, data []byte) (*block, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, number))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		return nil, err
	}
	return &block{path: path, number: number, data: data, hash: h}, nil
}

// damagedRange is a part of a block without intact records.
type damagedRange struct {
	begin, end    int    // bytes
	after, before uint64 // sequences of the messages around it; 0 = none in this block
	claimedSeq    uint64 // sequence in the first record of the range, if that field is intact
}

// findDamage returns the damaged ranges. Behind damage it continues with the record
// to which the length of the damaged one leads, or else with the first one whose
// hash is right. Stored data is JSON, hashes and ciphertext, so no message contains the bytes of
// a record by chance or by intent.
func (b *block) findDamage() []damagedRange {
	if bytes.HasPrefix(b.data, compressed) {
		return nil
	}
	var list []damagedRange
	last := uint64(0)
	for at := 0; at < len(b.data); {
		size, seq, ok := b.parseRecord(at)
		if ok {
			for i := len(list) - 1; i >= 0 && list[i].before == 0 && seq > list[i].after; i-- {
				list[i].before = seq
			}
			last = max(last, seq)
			at += size
			continue
		}
		h := damagedRange{begin: at, after: last}
		if len(b.data)-at >= recordHead {
			h.claimedSeq = binary.LittleEndian.Uint64(b.data[at+4:]) &^ (sequenceErased | sequenceDeleted)
		}
		h.end = b.nextRecord(at, size, last)
		list = append(list, h)
		at = h.end
	}
	return list
}

// endsUnfinished reports whether the range is the end of the block, behind which
// nothing is readable: the rest of an unfinished write, or a damaged end. A block
// without any intact record counts only if it is the beginning of one record, or zeros
// that never reached the disk, because it may be of an unknown format.
func (b *block) endsUnfinished(h damagedRange) bool {
	switch {
	case h.end != len(b.data):
		return false
	case h.begin > 0, len(b.data) < recordHead, len(bytes.Trim(b.data, "\x00")) == 0:
		return true
	}
	size := int(binary.LittleEndian.Uint32(b.data) &^ lengthHasHeaders)
	return size > len(b.data) && size <= maxRecord && b.mayBeRecord(0)
}

// nextRecord returns the start of the first intact record behind damage, or the end
// of the block.
func (b *block) nextRecord(at, size int, last uint64) int {
	whole := func(at int) bool {
		_, seq, ok := b.parseRecord(at)
		return ok && (seq == 0 || seq > last)
	}
	if size > 0 && whole(at+size) {
		return at + size
	}
	for at++; at < len(b.data); at++ {
		if b.mayBeRecord(at) && whole(at) {
			break
		}
	}
	return at
}

// mayBeRecord reports whether there may be a sequence at this place, so that most
// places need no hash.
func (b *block) mayBeRecord(at int) bool {
	rest := b.data[at:]
	return len(rest) >= recordHead && binary.LittleEndian.Uint64(rest[4:])&^(sequenceErased|sequenceDeleted) < 1<<56
}

// parseRecord checks the record at this place. size is 0 if its length is invalid,
// seq is 0 if it is not a message.
func (b *block) parseRecord(at int) (size int, seq uint64, ok bool) {
	rest := b.data[at:]
	if len(rest) < recordHead+recordHash {
		return 0, 0, false
	}
	length := binary.LittleEndian.Uint32(rest)
	subject := int(binary.LittleEndian.Uint16(rest[20:]))
	headers := 0
	if length&lengthHasHeaders != 0 {
		headers = 4
	}
	size = int(length &^ lengthHasHeaders)
	if size > len(rest) || size > maxRecord || size < recordHead+subject+headers+recordHash {
		return 0, 0, false
	}
	body := rest[recordHead : size-recordHash]
	b.hash.Reset()
	_, _ = b.hash.Write(rest[4:20])
	_, _ = b.hash.Write(body[:subject])
	_, _ = b.hash.Write(body[subject+headers:])
	var sum [recordHash]byte
	if !bytes.Equal(b.hash.Sum(sum[:0]), rest[size-recordHash:size]) {
		return size, 0, false
	}
	seq = binary.LittleEndian.Uint64(rest[4:])
	switch {
	case seq&sequenceDeleted != 0:
		return size, 0, true
	case seq&sequenceErased != 0:
		return size, seq &^ sequenceErased, true
	}
	return size, seq, headers == 0 || headersEnd(body[subject:])
}

// headersEnd reports whether the length of the headers is right, which no hash
// covers.
func headersEnd(b []byte) bool {
	length := uint64(binary.LittleEndian.Uint32(b))
	b = b[4:]
	return length <= uint64(len(b)) && bytes.HasPrefix(b, []byte("NATS/1.0")) && bytes.HasSuffix(b[:length], []byte("\r\n\r\n"))
}

// withoutRanges returns the block without these ranges.
func (b *block) withoutRanges(holes []damagedRange) []byte {
	if len(holes) == 0 {
		return b.data
	}
	whole := make([]byte, 0, len(b.data))
	at := 0
	for _, h := range holes {
		whole = append(whole, b.data[at:h.begin]...)
		at = h.end
	}
	return append(whole, b.data[at:]...)
}

// recordInfo describes an intact record.
type recordInfo struct {
	begin, end int
	seq        uint64
	deletes    bool // it marks the deletion of the message with seq
	subject    []byte
}

// listRecords returns the records of a block without damage.
func (b *block) listRecords() []recordInfo {
	var list []recordInfo
	for at := 0; at < len(b.data); {
		size, _, ok := b.parseRecord(at)
		if !ok {
			break
		}
		seq := binary.LittleEndian.Uint64(b.data[at+4:])
		subject := int(binary.LittleEndian.Uint16(b.data[at+20:]))
		list = append(list, recordInfo{
			begin: at, end: at + size, seq: seq &^ (sequenceErased | sequenceDeleted), deletes: seq&sequenceDeleted != 0,
			subject: b.data[at+recordHead : at+recordHead+subject],
		})
		at += size
	}
	return list
}
