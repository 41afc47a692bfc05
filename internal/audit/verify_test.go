package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestVerify_ExplainsProblems(t *testing.T) {
	// Each case starts with ten batches.
	tests := []struct {
		name string
		do   func(c *chain)
		want []string // problems; nil = none
		gone [2]uint64
	}{
		{"nothing", func(*chain) {}, nil, [2]uint64{}},
		{"erased with a reason", func(c *chain) {
			b := c.read(4)
			rec, _ := b.decodeRecord(0)
			b.removeContent(0)
			b.removeContent(1)
			c.messages[4].Data = b.encodeBatch()
			c.admin(EventErase, rec.RequestID, nil)
		}, nil, [2]uint64{2, 0}},
		{"erased with the reason of another request", func(c *chain) {
			b := c.read(4)
			b.removeContent(0)
			c.messages[4].Data = b.encodeBatch()
			c.admin(EventErase, "someone-else", nil)
		}, []string{ProblemDeleted}, [2]uint64{}},
		{"erased with an earlier reason", func(c *chain) {
			c.admin(EventErase, uuid7(epoch(), 1000), nil)
			b := c.add(outcomeOf(epoch(), 1000))
			b.removeContent(0)
			c.messages[len(c.messages)-1].Data = b.encodeBatch()
		}, []string{ProblemDeleted}, [2]uint64{}},
		{"expired", func(c *chain) {
			c.admin(EventExpire, "", c.read(4).endPosition())
			for i := range 5 {
				b := c.read(i)
				for k := range b.entries {
					b.removeContent(k)
				}
				c.append(newChainSubjects(DefaultWriter).withoutContents+fmt.Sprint(b.number), b)
			}
			c.messages = c.messages[5:]
		}, nil, [2]uint64{0, 10}},
		{"expired beyond the recorded position", func(c *chain) {
			c.admin(EventExpire, "", c.read(4).endPosition())
			b := c.read(5)
			b.removeContent(0)
			c.messages[5].Data = b.encodeBatch()
		}, []string{ProblemDeleted}, [2]uint64{}},
		{"trimmed", func(c *chain) {
			c.admin(EventCheckpoint, "", c.read(4).endPosition())
			c.messages = c.messages[5:]
		}, nil, [2]uint64{}},
		{"trimmed half", func(c *chain) {
			c.admin(EventCheckpoint, "", c.read(4).endPosition())
			c.messages = slices.Delete(c.messages, 1, 4)
		}, nil, [2]uint64{}},
		{"trimmed beyond the recorded position", func(c *chain) {
			c.admin(EventCheckpoint, "", c.read(4).endPosition())
			c.messages = c.messages[7:]
		}, []string{ProblemDeleted}, [2]uint64{}},
		{"checkpoint of another chain", func(c *chain) {
			mark := c.read(4).endPosition()
			mark.Hash = digest{1}.String()
			c.admin(EventCheckpoint, "", mark)
			c.messages = c.messages[5:]
		}, []string{ProblemAltered}, [2]uint64{}},
		{"copy of an interrupted rewrite", func(c *chain) {
			b := c.read(4)
			rec, _ := b.decodeRecord(0)
			c.admin(EventErase, rec.RequestID, nil)
			b.removeContent(0)
			b.removeContent(1)
			c.append(newChainSubjects(DefaultWriter).withoutContents+fmt.Sprint(b.number), b)
		}, nil, [2]uint64{2, 0}},
		{"damaged copy", func(c *chain) {
			b := c.read(4)
			b.entries[0].facts = []byte(`{}`)
			c.append(newChainSubjects(DefaultWriter).rewritten+fmt.Sprint(b.number), b)
		}, []string{ProblemAltered}, [2]uint64{}},
		{"damaged copy only", func(c *chain) {
			b := c.read(4)
			b.entries[0].facts = []byte(`{}`)
			c.append(newChainSubjects(DefaultWriter).rewritten+fmt.Sprint(b.number), b)
			c.messages = slices.Delete(c.messages, 4, 5)
		}, []string{ProblemAltered}, [2]uint64{}},
		{"copy under another number", func(c *chain) {
			c.append(newChainSubjects(DefaultWriter).rewritten+"7", c.read(4))
		}, []string{ProblemAltered}, [2]uint64{}},
		{"foreign messages", func(c *chain) {
			c.append("audit.main.content", c.read(2))
			c.append("audit.mainly", c.read(2))
			c.append("audit.other", c.read(2))
		}, nil, [2]uint64{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newChain(t, 1)
			for n := range 10 {
				c.add(decisionOf(epoch(), n), outcomeOf(epoch(), n))
			}
			tt.do(c)
			report := verify(c.messages, c.head(), headTrusted)
			var got []string
			for _, p := range report.Problems {
				got = append(got, p.Kind)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got problems %v, want %v", report.Problems, tt.want)
			}
			if gone := [2]uint64{report.ErasedContents, report.ExpiredContents}; tt.want == nil && gone != tt.gone {
				t.Errorf("got %d erased and expired, want %d", gone, tt.gone)
			}
		})
	}
}

func TestVerify_ChecksHead(t *testing.T) {
	c := newChain(t, 1)
	c.grow(rand.New(rand.NewPCG(1, 1)), 5)
	behind := *c.head()
	c.grow(rand.New(rand.NewPCG(1, 2)), 4)
	other := newChain(t, 2)
	other.grow(rand.New(rand.NewPCG(1, 3)), 9)
	strange := *c.head()
	strange.Writer = "someone"
	tests := []struct {
		name     string
		messages []store.Message
		head     *chainHead
		how      headStatus
		want     string
		unsigned uint64
	}{
		{"of the end", c.messages, c.head(), headTrusted, "", 0},
		{"a little behind", c.messages[:6], &behind, headTrusted, "", 1},
		{"behind by seconds", c.messages, &behind, headTrusted, ProblemUnsigned, 4},
		{"none", c.messages, nil, headAbsent, ProblemHeadMissing, 0},
		{"no head and no chain", nil, nil, headAbsent, "", 0},
		{"invalid signature", c.messages, c.head(), headInvalid, ProblemForged, 0},
		{"unreadable", c.messages, nil, headInvalid, ProblemForged, 0},
		{"of another key", c.messages, c.head(), headUnknownKey, ProblemHeadUnknownKey, 0},
		{"of another writer", c.messages, &strange, headTrusted, ProblemForged, 0},
		{"of another chain", c.messages, other.head(), headTrusted, ProblemForged, 0},
		{"head without a chain", nil, c.head(), headTrusted, ProblemTruncated, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			report := verify(tt.messages, tt.head, tt.how)
			if tt.want == "" && !report.OK() || tt.want != "" && (report.OK() || report.Problems[0].Kind != tt.want) {
				t.Errorf("got problems %v, want %q", report.Problems, tt.want)
			}
			if report.Unsigned != tt.unsigned {
				t.Errorf("got %d unsigned batches, want %d", report.Unsigned, tt.unsigned)
			}
		})
	}
}

// newFilledDir returns a closed data directory with a log.
func newFilledDir(t *testing.T) (dir string, requests int) {
	t.Helper()
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	for n := range 20 {
		d.append(auditLog, decisionOf(now, n), outcomeOf(now, n))
	}
	d.append(auditLog, recordsWithSecret(now, 20, "a long content stored separately")...)
	d.erase(auditLog, uuid7(now, 3), 2)
	d.close(auditLog)
	if err := d.store.Close(); err != nil {
		t.Fatal(err)
	}
	return d.dir, 21
}

// readFiles returns the contents of the files of a directory by name.
func readFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestVerifyOffline_ChangesNoFile(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir, requests := newFilledDir(t)
	before := readFiles(t, dir)
	var steps []uint64
	report, err := Verify(t.Context(), VerifyConfig{
		DataDir: dir, Signer: testKey, Progress: func(done, _ uint64) { steps = append(steps, done) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || report.Records != uint64(2*requests+3) || report.ErasedContents != 2 || report.Contents != uint64(2*requests-2) {
		t.Errorf("got report %+v, want no problems", report)
	}
	if len(steps) == 0 || !slices.IsSorted(steps) {
		t.Errorf("got progress %d", steps)
	}
	after := readFiles(t, dir)
	for path, data := range before {
		if !bytes.Equal(after[path], data) {
			t.Errorf("got a change of %s, want none", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("got %d files, want %d", len(after), len(before))
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "caprouter-copy-*")); len(left) > 0 {
		t.Errorf("got temporary copies %s, want none", left)
	}
}

// Verify also works while a router uses the directory.
func TestVerify_WhileRouterRuns(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	d.append(auditLog, outcomeOf(time.Now(), 0))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			if err := auditLog.Append(t.Context(), outcomeOf(time.Now(), n)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 5 {
		report, err := Verify(t.Context(), VerifyConfig{DataDir: d.dir, Signer: testKey})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Problems {
			t.Errorf("got problem %q, want none", p)
		}
	}
	cancel()
	testkit.WaitClosed(t, done)
}

func TestVerify_RequiresSignerAndLog(t *testing.T) {
	if _, err := Verify(t.Context(), VerifyConfig{DataDir: t.TempDir(), Signer: testKey}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty directory: got error %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := Verify(t.Context(), VerifyConfig{DataDir: t.TempDir()}); err == nil {
		t.Error("without a signer: got no error, want one")
	}
}

// The files themselves are damaged. The engine drops unreadable messages, so a changed message may
// be reported as missing, but the chain never verifies.
func TestVerify_ReportsDamagedFiles(t *testing.T) {
	dir, _ := newFilledDir(t)
	blocks, err := filepath.Glob(filepath.Join(streamDir(dir), "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("got block files %s, error %v, want one", blocks, err)
	}
	whole, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	// The positions of live messages; bytes overwritten by an erasure may change.
	var spots []int
	for at := 0; ; {
		i := bytes.Index(whole[at:], []byte(`{"kind":"`))
		if i < 0 {
			break
		}
		at += i + 1
		spots = append(spots, at)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for n := range 40 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			data := bytes.Clone(whole)
			if n%4 == 3 {
				data = data[:len(data)/2+rng.IntN(len(data)/2-100)]
			} else {
				data[spots[rng.IntN(len(spots))]+rng.IntN(20)] ^= 1 << rng.IntN(8)
			}
			if err := os.WriteFile(blocks[0], data, 0o600); err != nil {
				t.Fatal(err)
			}
			report, err := Verify(t.Context(), VerifyConfig{DataDir: dir, Signer: testKey})
			if err != nil {
				t.Fatal(err)
			}
			if report.OK() {
				t.Error("got no problem, want one")
			}
			for _, p := range report.Problems {
				if !slices.Contains([]string{ProblemAltered, ProblemDeleted, ProblemTruncated}, p.Kind) {
					t.Errorf("got problem %q, want altered, deleted or truncated", p)
				}
				if !strings.HasPrefix(p.String(), p.Kind+" batch ") {
					t.Errorf("got %q, want a batch in it", p)
				}
			}
		})
	}
}

// An old, signed head must not permit to rewrite later records.
func TestVerify_ReportsOldHead(t *testing.T) {
	for _, restart := range []bool{false, true} {
		d := newLogFixture(t)
		auditLog := d.open()
		d.append(auditLog, outcomeOf(d.now(), 1))
		d.close(auditLog)
		old, err := os.ReadFile(d.headFile())
		if err != nil {
			t.Fatal(err)
		}
		auditLog = d.open()
		d.append(auditLog, outcomeOf(d.now(), 2))
		d.close(auditLog)
		if report := d.verify(); !report.OK() {
			t.Fatalf("got problems %v before the change", report.Problems)
		}
		if err := os.WriteFile(d.headFile(), old, 0o600); err != nil {
			t.Fatal(err)
		}
		want := ProblemUnsigned
		if restart {
			d.close(d.open())
			want = ProblemMismatch
		}
		if report := d.verify(); len(report.Problems) != 1 || report.Problems[0].Kind != want {
			t.Errorf("restarted %v: got problems %v, want %s", restart, report.Problems, want)
		}
	}
}
