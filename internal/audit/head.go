package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/datadir"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Signer signs and verifies the head of a chain.
type Signer interface {
	KeyID() string
	// Sign returns the id of the key it signed with, because the current key may
	// have changed by the next call of KeyID.
	Sign(purpose string, data []byte) (keyID string, sig []byte)
	Verify(purpose, keyID string, data, sig []byte) bool
}

// headPurpose binds a signature to heads, so that it is valid for nothing else.
const headPurpose = "audit-head"

// chainHead is the recorded end of a chain. Because it is signed and stored outside
// the stream, it reveals a chain that was cut off or rewritten.
type chainHead struct {
	Writer string    `json:"writer"`
	Chain  string    `json:"chain"` // hex
	Batch  uint64    `json:"batch"`
	Record uint64    `json:"record"`
	Hash   string    `json:"hash"` // hex, of the last record
	Seq    uint64    `json:"seq"`  // of its message
	At     time.Time `json:"at"`

	Steps []clockStep `json:"clock_steps,omitempty"` // oldest first
	// Chains are the last batches of the other chains in the log, by writer, so that it is
	// noticed if one of them is cut off together with its head.
	Chains map[string]uint64 `json:"chains,omitempty"`
}

// signedHead is a head in the file, with the exact bytes that were signed.
type signedHead struct {
	Head      string `json:"head"`
	KeyID     string `json:"key_id"`
	Signature []byte `json:"signature"`
}

// signedEnd returns the end of the chain that the head is about.
func (h *chainHead) signedEnd() (chainEnd, error) {
	p := chainEnd{number: h.Batch, last: h.Record, seq: h.Seq}
	chain, err := hex.DecodeString(h.Chain)
	if err != nil || copy(p.chain[:], chain) != len(p.chain) {
		return chainEnd{}, errors.New("head: invalid chain")
	}
	hash, err := hex.DecodeString(h.Hash)
	if err != nil || copy(p.hash[:], hash) != len(p.hash) {
		return chainEnd{}, errors.New("head: invalid hash")
	}
	return p, nil
}

// The file has two slots, which are written alternately: if the process dies in the
// middle of a write, the other slot is intact. A slot is one page, so that no write
// touches both.
const (
	slotSize  = 4096
	slotCount = 2
)

// headFile is the open head file. One goroutine at a time writes to it.
type headFile struct {
	file     *os.File
	nextSlot int64
	unsynced atomic.Bool
}

func openHeadFile(path string) (*headFile, error) {
	f, err := datadir.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("open the head of the audit log: %w", err)
	}
	return &headFile{file: f}, nil
}

// writeHead signs the head and writes it to the older slot.
func (f *headFile) writeHead(h *chainHead, signer Signer) error {
	text, err := strictjson.Marshal(h)
	if err != nil {
		return fmt.Errorf("write the head of the audit log: %w", err)
	}
	keyID, sig := signer.Sign(headPurpose, text)
	slot, err := strictjson.Marshal(signedHead{Head: string(text), KeyID: keyID, Signature: sig})
	if err != nil || len(slot) >= slotSize {
		return fmt.Errorf("write the head of the audit log: %d bytes: %w", len(slot), errors.Join(err))
	}
	page := bytes.Repeat([]byte{' '}, slotSize)
	copy(page, slot)
	page[slotSize-1] = '\n'
	if _, err := f.file.WriteAt(page, f.nextSlot*slotSize); err != nil {
		return fmt.Errorf("write the head of the audit log: %w", err)
	}
	f.nextSlot = (f.nextSlot + 1) % slotCount
	f.unsynced.Store(true)
	return nil
}

func (f *headFile) sync() error {
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("write the head of the audit log: %w", err)
	}
	return nil
}

// headStatus is the result of verifying a head.
type headStatus int

const (
	headAbsent headStatus = iota // no file, or an empty one
	headTrusted
	headUnknownKey // signed with an unknown key: it proves nothing
	headInvalid    // not a head, or an invalid signature
)

// readHead returns the newest head with the best status.
func readHead(path string, signer Signer) (h *chainHead, slot int64, how headStatus, err error) {
	f, err := datadir.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, headAbsent, nil
	}
	if err != nil {
		return nil, 0, headAbsent, fmt.Errorf("read the head of the audit log: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, slotCount*slotSize+1))
	if err != nil {
		return nil, 0, headAbsent, fmt.Errorf("read the head of the audit log: %w", err)
	}
	h, slot, how = chooseHead(data, signer)
	return h, slot, how, nil
}

// chooseHead returns the newest valid head of a file, or the status of the best one.
// A slot that was half written by a dying process is ignored if the other slot is
// valid.
func chooseHead(data []byte, signer Signer) (best *chainHead, slot int64, how headStatus) {
	how = headAbsent
	for i := range int64(slotCount) {
		from := min(i*slotSize, int64(len(data)))
		text := bytes.Trim(data[from:min(from+slotSize, int64(len(data)))], " \n\x00")
		if len(text) == 0 {
			continue
		}
		h, got := verifyHead(text, signer)
		better := got == how && h != nil && best != nil && h.Batch > best.Batch
		if how == headAbsent || statusRank(got) < statusRank(how) || better {
			best, slot, how = h, i, got
		}
	}
	return best, slot, how
}

// statusRank orders by trust, the most trusted first.
func statusRank(t headStatus) int {
	switch t {
	case headTrusted:
		return 0
	case headUnknownKey:
		return 1
	case headInvalid:
		return 2
	}
	return 3
}

func verifyHead(text []byte, signer Signer) (*chainHead, headStatus) {
	var sealed signedHead
	var h chainHead
	if strictjson.Unmarshal(text, &sealed) != nil || strictjson.Unmarshal([]byte(sealed.Head), &h) != nil {
		return nil, headInvalid
	}
	if _, err := h.signedEnd(); err != nil {
		return nil, headInvalid
	}
	switch {
	case signer.Verify(headPurpose, sealed.KeyID, []byte(sealed.Head), sealed.Signature):
		return &h, headTrusted
	case sealed.KeyID == signer.KeyID():
		return &h, headInvalid
	}
	return &h, headUnknownKey
}

// headInterval is the minimum time between two heads. A signature needs as much CPU
// time as the rest of a record, so one head covers all batches of that time.
const (
	headInterval     = 50 * time.Millisecond
	headSyncInterval = time.Second // a head survives the death of the process without a sync
)

// writeHeads signs and writes the head whenever the chain has grown, outside the
// path of Append. The writer itself writes the first head of a process, before this
// loop has anything to do.
func (l *Log) writeHeads(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.headOutdated:
		}
		if err := l.writeHead(); err != nil {
			l.cfg.Logger.ErrorContext(ctx, "write the head of the audit log", "error", err)
		}
		pause.Reset(headInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

// syncPeriodically syncs the head file while it changes, in a goroutine of its own,
// because a slow disk must not delay the next head.
func (f *headFile) syncPeriodically(ctx context.Context, logger *slog.Logger) error {
	for range run.Ticks(ctx, headSyncInterval) {
		if f.unsynced.Swap(false) {
			if err := f.sync(); err != nil {
				logger.ErrorContext(ctx, "write the head of the audit log", "error", err)
			}
		}
	}
	return nil
}

func (l *Log) writeHead() error {
	at := l.end.Load()
	if at.number == 0 {
		return nil
	}
	return l.head.writeHead(l.newHead(l.storedChain, at), l.cfg.Signer)
}
