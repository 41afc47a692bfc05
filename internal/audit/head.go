package audit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Signer signs and checks the head of a chain.
type Signer interface {
	KeyID() string
	// Sign returns the name of the key it signed with: another may sign by the
	// time one asks for KeyID.
	Sign(purpose string, data []byte) (keyID string, sig []byte)
	Verify(purpose, keyID string, data, sig []byte) bool
}

// headPurpose keeps a signature on a head from being one on anything else.
const headPurpose = "audit-head"

// head is how far a chain has come. Signed and kept outside the log, it is what
// a chain whose end was cut off, or that was written anew, is told by.
type head struct {
	Writer string    `json:"writer"`
	Chain  string    `json:"chain"` // hex
	Batch  uint64    `json:"batch"`
	Record uint64    `json:"record"`
	Hash   string    `json:"hash"` // hex, of that record
	Seq    uint64    `json:"seq"`  // of the message it was in
	At     time.Time `json:"at"`
}

// sealedHead is a head as it lies in a file: the very bytes that were signed.
type sealedHead struct {
	Head      string `json:"head"`
	KeyID     string `json:"key_id"`
	Signature []byte `json:"signature"`
}

// place turns the head back into a place to go on from.
func (h *head) place() (place, error) {
	p := place{number: h.Batch, last: h.Record, seq: h.Seq}
	chain, err := hex.DecodeString(h.Chain)
	if err != nil || copy(p.chain[:], chain) != len(p.chain) {
		return place{}, errors.New("head: chain is not an id")
	}
	hash, err := hex.DecodeString(h.Hash)
	if err != nil || copy(p.hash[:], hash) != len(p.hash) {
		return place{}, errors.New("head: hash is not one")
	}
	return p, nil
}

// The file has two slots, written in turns: whatever ends the process in the
// middle of a write, the other slot is whole. A slot fits a page, so that no
// write touches both.
const (
	slotSize  = 4096
	headMode  = 0o600
	slotCount = 2
)

// headFile is the open file of a writer.
type headFile struct {
	file *os.File
	slot int64
}

func openHeadFile(path string) (*headFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, headMode)
	if err != nil {
		return nil, fmt.Errorf("open the head of the trail: %w", err)
	}
	return &headFile{file: f}, nil
}

// write signs the head and puts it into the older slot.
func (f *headFile) write(h *head, signer Signer) error {
	text, err := strictjson.Marshal(h)
	if err != nil {
		return fmt.Errorf("write the head of the trail: %w", err)
	}
	keyID, sig := signer.Sign(headPurpose, text)
	slot, err := strictjson.Marshal(sealedHead{Head: string(text), KeyID: keyID, Signature: sig})
	if err != nil || len(slot) >= slotSize {
		return fmt.Errorf("write the head of the trail: %d bytes: %w", len(slot), errors.Join(err))
	}
	page := bytes.Repeat([]byte{' '}, slotSize)
	copy(page, slot)
	page[slotSize-1] = '\n'
	if _, err := f.file.WriteAt(page, f.slot*slotSize); err != nil {
		return fmt.Errorf("write the head of the trail: %w", err)
	}
	f.slot = (f.slot + 1) % slotCount
	return nil
}

func (f *headFile) sync() error {
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("write the head of the trail: %w", err)
	}
	return nil
}

// trust is what a signature says of a head.
type trust int

const (
	headAbsent  trust = iota // no file, or nothing in it
	headSigned               // signed with a key the signer knows
	headForeign              // signed with another key: nothing can be said
	headForged               // not a head, or the signature is not one of its key's
)

// readHead reads the newest head of a file that can be trusted most.
func readHead(path string, signer Signer) (h *head, slot int64, how trust, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, headAbsent, nil
	}
	if err != nil {
		return nil, 0, headAbsent, fmt.Errorf("read the head of the trail: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, slotCount*slotSize+1))
	if err != nil {
		return nil, 0, headAbsent, fmt.Errorf("read the head of the trail: %w", err)
	}
	h, slot, how = chooseHead(data, signer)
	return h, slot, how, nil
}

// chooseHead picks the newest properly signed head of a file; without one it
// says what is wrong with the file. A slot that a dying process left half
// written is no forgery as long as the other one is good.
func chooseHead(data []byte, signer Signer) (best *head, slot int64, how trust) {
	how = headAbsent
	for i := range int64(slotCount) {
		from := min(i*slotSize, int64(len(data)))
		text := bytes.Trim(data[from:min(from+slotSize, int64(len(data)))], " \n\x00")
		if len(text) == 0 {
			continue
		}
		h, got := openSeal(text, signer)
		better := got == how && h != nil && best != nil && h.Batch > best.Batch
		if how == headAbsent || rank(got) < rank(how) || better {
			best, slot, how = h, i, got
		}
	}
	return best, slot, how
}

// rank orders verdicts: the most trusted first.
func rank(t trust) int {
	switch t {
	case headSigned:
		return 0
	case headForeign:
		return 1
	case headForged:
		return 2
	}
	return 3
}

func openSeal(text []byte, signer Signer) (*head, trust) {
	var sealed sealedHead
	var h head
	if strictjson.Unmarshal(text, &sealed) != nil || strictjson.Unmarshal([]byte(sealed.Head), &h) != nil {
		return nil, headForged
	}
	if _, err := h.place(); err != nil {
		return nil, headForged
	}
	switch {
	case signer.Verify(headPurpose, sealed.KeyID, []byte(sealed.Head), sealed.Signature):
		return &h, headSigned
	case sealed.KeyID == signer.KeyID():
		return &h, headForged
	}
	return &h, headForeign
}
