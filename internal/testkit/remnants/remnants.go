// Package remnants reads the files of a data directory like an attacker with the directory and its
// keys: it parses the engine's blocks without regard to deletion marks, and decrypts every record
// for which a key exists.
//
//	for _, r := range remnants.Read(t, dataDir, ring, requestIDs...) { … bytes.Contains(r.Data, canary) … }
package remnants

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/contentkey"
)

// Remnant is a readable text.
type Remnant struct {
	Where     string // the file, and the subject of a decrypted record
	Data      []byte
	Decrypted bool
}

// reader collects remnants.
type reader struct {
	t       testing.TB
	ring    *contentkey.Keyring
	records []record
	keys    map[contentkey.ID]*contentkey.Key
	found   []Remnant
}

// record is a record of a block, as in internal/store/repair.
type record struct {
	file, subject string
	data          []byte
}

// Read returns every file below the directory, and what the ring decrypts in them. The
// places are those of contents in the audit log.
func Read(t testing.TB, dir string, ring *contentkey.Keyring, auditPlaces ...string) []Remnant {
	t.Helper()
	r := reader{t: t, ring: ring, keys: map[contentkey.ID]*contentkey.Key{}}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r.found = append(r.found, Remnant{Where: path, Data: data})
		if strings.HasSuffix(path, ".blk") {
			r.parseBlock(path, data)
		}
		r.openAudit(path, data, auditPlaces)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.openKeys()
	r.openValues()
	var parts []byte // of large contents of the audit log
	for _, rec := range r.records {
		if strings.HasPrefix(rec.subject, "audit.") && strings.HasSuffix(rec.subject, ".content") {
			parts = append(parts, rec.data...)
		}
	}
	r.openAudit("parts of contents", parts, auditPlaces)
	return r.found
}

// parseBlock adds the records of a block.
func (r *reader) parseBlock(path string, data []byte) {
	const head, hash = 22, 8
	for len(data) >= head+hash {
		length := binary.LittleEndian.Uint32(data)
		size, subject := int(length&^(1<<31)), int(binary.LittleEndian.Uint16(data[20:]))
		if size < head+hash+subject || size > len(data) {
			r.t.Fatalf("%s: a record of %d bytes", path, size)
		}
		body := data[head : size-hash]
		rec := record{file: path, subject: string(body[:subject])}
		if body = body[subject:]; length&(1<<31) != 0 {
			body = body[4+binary.LittleEndian.Uint32(body):]
		}
		rec.data = body
		r.records = append(r.records, rec)
		data = data[size:]
	}
}

// openKeys decrypts epoch keys and then data keys.
func (r *reader) openKeys() {
	for _, rec := range r.records {
		if data, err := r.ring.Open(rec.data, []byte(rec.subject)); err == nil {
			if key, err := contentkey.ParseKey(data); err == nil {
				r.keys[key.ID()] = key
			}
		}
	}
	for _, rec := range r.records {
		id, _ := contentkey.KeyOf(rec.data)
		epoch := r.keys[id]
		if epoch == nil {
			continue
		}
		if data, err := epoch.Open(rec.data, []byte(rec.subject)); err == nil {
			if key, err := contentkey.ParseKey(data); err == nil {
				r.keys[key.ID()] = key
			}
		}
	}
}

// openValues decrypts the values of buckets. The chunks of a large value are joined.
func (r *reader) openValues() {
	blobs := map[string]*record{}
	for _, rec := range r.records {
		if !strings.HasPrefix(rec.subject, "$BLOB.") {
			r.openValue(rec, rec.subject)
			continue
		}
		if blobs[rec.subject] == nil {
			blobs[rec.subject] = &record{file: rec.file, subject: rec.subject}
		}
		blobs[rec.subject].data = append(blobs[rec.subject].data, rec.data...)
	}
	for subject, rec := range blobs {
		parts := strings.SplitN(subject, ".", 4) // $BLOB, bucket, id, key
		r.openValue(*rec, "$KV."+parts[1]+"."+parts[3])
	}
}

func (r *reader) openValue(rec record, place string) {
	id, _ := contentkey.KeyOf(rec.data)
	if key := r.keys[id]; key != nil {
		if data, err := key.Open(rec.data, []byte(place)); err == nil {
			r.found = append(r.found, Remnant{Where: rec.file + " " + rec.subject, Data: data, Decrypted: true})
		}
	}
}

// openAudit decrypts contents in batches of the audit log: a varint with the length
// precedes each.
func (r *reader) openAudit(path string, data []byte, places []string) {
	if len(places) == 0 {
		return
	}
	mark := r.ring.Seal(nil, nil)[:9] // version and key id
	for at := 0; ; at++ {
		next := bytes.Index(data[at:], mark)
		if next < 0 {
			return
		}
		at += next
		for width := 1; width <= 4 && width <= at; width++ {
			size, n := binary.Uvarint(data[at-width : at])
			if n != width || size > uint64(len(data)-at) {
				continue
			}
			for _, place := range places {
				if content, err := r.ring.Open(data[at:at+int(size)], []byte(place)); err == nil {
					r.found = append(r.found, Remnant{Where: path + " " + place, Data: content, Decrypted: true})
				}
			}
		}
	}
}
