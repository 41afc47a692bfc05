package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/internal/datadir"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/store/storecopy"
)

// VerifyConfig selects the log to verify: the one in a data directory, or an open
// stream.
type VerifyConfig struct {
	// DataDir is read, and never written, even if a router uses it: Verify reads a
	// temporary copy.
	DataDir string
	Log     *store.Log // used instead of DataDir

	HeadFile string // "" = HeadFile in DataDir
	Writer   string // "" = the replica of DataDir, "main" without one
	Signer   Signer // knows the keys of the heads
	// Progress is called with the number of messages read, and about how many there
	// are.
	Progress func(done, total uint64)
}

// progressEvery is the number of messages between two calls of Progress.
const progressEvery = 1000

// Verify checks a whole log. The error means that it could not be read; problems of
// the log are in the report.
func Verify(ctx context.Context, cfg VerifyConfig) (_ *Report, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("verify the audit log: %w", err)
		}
	}()
	if cfg.Signer == nil {
		return nil, errors.New("no signer")
	}
	if cfg.Writer == "" {
		if cfg.Writer, err = datadir.ReadReplica(cfg.DataDir); err != nil {
			return nil, err
		}
	}
	if cfg.HeadFile == "" {
		cfg.HeadFile = filepath.Join(cfg.DataDir, HeadFile)
	}
	if cfg.Progress == nil {
		cfg.Progress = func(uint64, uint64) {}
	}
	// Read the head before the stream. Records that are written meanwhile are then
	// behind the head. In the other order, a newer head would make the chain look
	// cut off.
	h, _, how, err := readHead(cfg.HeadFile, cfg.Signer)
	if err != nil {
		return nil, err
	}
	log := cfg.Log
	if log == nil {
		opened, err := openCopy(ctx, cfg.DataDir)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		log = opened.log
	}
	return verifyLog(ctx, cfg, log, h, how)
}

func verifyLog(ctx context.Context, cfg VerifyConfig, log *store.Log, h *chainHead, how headStatus) (*Report, error) {
	info, err := log.Info(ctx)
	if err != nil {
		return nil, err
	}
	x := newChainReader(cfg.Writer, func(seq uint64) ([]byte, error) {
		m, err := log.Get(ctx, seq)
		return m.Data, err
	})
	done := uint64(0)
	for _, subject := range []string{x.subjects.withoutContents + "*", x.subjects.rewritten + "*", x.subjects.chain} {
		err := log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			x.addMessage(m)
			if done++; done%progressEvery == 0 {
				cfg.Progress(done, max(done, info.Msgs))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	cfg.Progress(done, done)
	// A running router has signed a newer head meanwhile.
	if newer, _, again, err := readHead(cfg.HeadFile, cfg.Signer); err == nil && again == headTrusted && how == headTrusted && newer.Chain == h.Chain {
		x.signedUpTo = newer.Batch
	}
	return x.buildReport(h, how), nil
}

// streamDir returns the directory of the stream's files.
func streamDir(dataDir string) string { return storecopy.StreamDir(dataDir, LogConfig(0).Name) }

// logCopy is an open copy of a log.
type logCopy struct {
	*storecopy.Copy
	log *store.Log
}

// openCopy copies the files and opens the copy.
func openCopy(ctx context.Context, dataDir string) (_ *logCopy, err error) {
	if err := datadir.Check(dataDir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(streamDir(dataDir)); err != nil {
		return nil, fmt.Errorf("no audit log in %s: %w", dataDir, err)
	}
	files, err := storecopy.Open(ctx, dataDir, LogConfig(0).Name)
	if err != nil {
		return nil, err
	}
	log, err := files.Store.Log(ctx, LogConfig(0))
	if err != nil {
		files.Close()
		return nil, err
	}
	return &logCopy{files, log}, nil
}

// Kinds of problems.
const (
	ProblemAltered        = "altered"   // the content differs from the hash
	ProblemDeleted        = "deleted"   // it is missing, and not announced
	ProblemReordered      = "reordered" // it is stored at another place than it was written
	ProblemTruncated      = "truncated"
	ProblemDuplicated     = "duplicated" // it is stored more than once
	ProblemForged         = "forged"     // this log did not write it
	ProblemHeadMissing    = "head_missing"
	ProblemHeadUnknownKey = "head_unknown_key"  // it is signed with an unknown key
	ProblemUnsigned       = "unsigned"          // the signed head is older than it can be
	ProblemMismatch       = "mismatch_at_start" // at a start the chain did not match its head
)

// Problem is one detected problem.
type Problem struct {
	Kind   string    `json:"what"`
	Batch  uint64    `json:"batch,omitzero"`  // 0 = no single batch
	Record uint64    `json:"record,omitzero"` // the first affected record, if known
	At     time.Time `json:"at,omitzero"`     // time of the record, or of the one before a missing record
	Detail string    `json:"detail"`
}

// String renders the problem on one line.
func (p Problem) String() string {
	s := p.Kind
	if p.Batch > 0 {
		s += fmt.Sprintf(" batch %d", p.Batch)
	}
	if p.Record > 0 {
		s += fmt.Sprintf(" record %d", p.Record)
	}
	if !p.At.IsZero() {
		s += " (" + p.At.Format(time.RFC3339) + ")"
	}
	return s + ": " + p.Detail
}

// Report is the result of Verify.
type Report struct {
	Writer  string    `json:"writer"`
	Batches uint64    `json:"batches"`
	Records uint64    `json:"records"`
	First   uint64    `json:"first"` // positions of the first and the last record
	Last    uint64    `json:"last"`
	From    time.Time `json:"from,omitzero"` // and their times
	To      time.Time `json:"to,omitzero"`
	// Contents is the number of intact contents. ErasedContents and ExpiredContents
	// were removed, and announced, and so were EvictedContents, before their retention.
	Contents        uint64 `json:"contents"`
	ErasedContents  uint64 `json:"erased_contents"`
	ExpiredContents uint64 `json:"expired_contents"`
	EvictedContents uint64 `json:"evicted_contents"`
	// Unsigned is the number of batches behind the signed head, written in the last
	// moments before the process ended or the copy was made. It cannot be detected
	// if they are cut off.
	Unsigned uint64 `json:"unsigned"`
	// Notes are facts that are not problems: checkpoints, changes of the key.
	Notes    []string  `json:"notes"`
	Problems []Problem `json:"problems"`
}

// OK reports whether there is no problem.
func (r *Report) OK() bool { return len(r.Problems) == 0 }
