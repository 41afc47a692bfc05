package audit

import (
	"fmt"
	"time"
)

// What is wrong with a trail.
const (
	ProblemAltered        = "altered"           // it says something else than it did
	ProblemDeleted        = "deleted"           // it is missing, and nothing says why
	ProblemReordered      = "reordered"         // it lies where it was not written
	ProblemTruncated      = "truncated"         // the end is missing
	ProblemDuplicated     = "duplicated"        // it is there more than once
	ProblemForged         = "forged"            // it was never written by this trail
	ProblemHeadMissing    = "head_missing"      // there is no signed head
	ProblemHeadUnknownKey = "head_unknown_key"  // it is signed with another key
	ProblemMismatch       = "mismatch_at_start" // a start found the chain was not what its head said
)

// Problem is one thing that is wrong.
type Problem struct {
	Kind   string    `json:"what"`
	Batch  uint64    `json:"batch,omitzero"`  // 0 = not of one batch
	Record uint64    `json:"record,omitzero"` // the first record it concerns, as far as that is known
	At     time.Time `json:"at,omitzero"`     // of the record, or of the one before what is missing
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

// Report is what Verify found.
type Report struct {
	Writer  string    `json:"writer"`
	Batches uint64    `json:"batches"`
	Records uint64    `json:"records"`
	First   uint64    `json:"first"` // position of the first and the last record
	Last    uint64    `json:"last"`
	From    time.Time `json:"from,omitzero"` // and their times
	To      time.Time `json:"to,omitzero"`
	// Contents are those that are there and are what they were; ErasedContents
	// and ExpiredContents are gone, and a record says why.
	Contents        uint64 `json:"contents"`
	ErasedContents  uint64 `json:"erased_contents"`
	ExpiredContents uint64 `json:"expired_contents"`
	// Unsigned is how many batches follow the signed head: those of the last
	// moments before the process ended or the copy was made. Nothing shows when
	// they are cut off.
	Unsigned uint64 `json:"unsigned"`
	// Notes are worth knowing and no problem: checkpoints, changes of the key.
	Notes    []string  `json:"notes"`
	Problems []Problem `json:"problems"`
}

// OK reports whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }
