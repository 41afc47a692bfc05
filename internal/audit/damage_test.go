package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// reopen opens the store again, as the next process does.
func (d *logFixture) reopen() {
	d.t.Helper()
	d.store = teststore.Open(d.t, func(c *store.Config) { c.Dir, c.SyncEvery = d.dir, time.Hour })
	log, err := d.store.Log(d.t.Context(), LogConfig(0))
	if err != nil {
		d.t.Fatal(err)
	}
	d.log = log
}

// TestLog_ContinuesAfterDamage flips one bit of a record in a closed log. Records that are appended
// later are found and verified after every restart, both after a clean shutdown and after SIGKILL,
// when the engine's index is old. Verify always reports the damage.
func TestLog_ContinuesAfterDamage(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string // a text in the batch with the damaged record
		want []string
		lost int // requests that are no longer found
	}{
		{"in the middle", "decision-20", []string{ProblemDeleted, ProblemMismatch}, 20},
		{"in the last but one", "decision-40", []string{ProblemDeleted, ProblemMismatch}, 40},
		{"in the last", `"event":"stop"`, []string{ProblemTruncated}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			d := newLogFixture(t)
			files := streamDir(d.dir)
			block, index := filepath.Join(files, "msgs", "1.blk"), filepath.Join(files, "msgs", "index.db")
			born := d.now()
			ids := []string{}
			appendTo := func(auditLog *Log, from, to int) {
				for n := from; n <= to; n++ {
					rec := decisionOf(born, n)
					if err := auditLog.Append(ctx, rec); err != nil {
						t.Fatal(err)
					}
					ids = append(ids, rec.RequestID)
				}
			}
			end := func(auditLog *Log) {
				if err := auditLog.Close(ctx); err != nil {
					t.Fatal(err)
				}
				if err := d.store.Close(); err != nil {
					t.Fatal(err)
				}
			}
			auditLog := d.open()
			appendTo(auditLog, 1, 40)
			end(auditLog)
			flipBit(t, block, tt.in)
			if tt.lost > 0 { // the start repairs damage at the end
				if _, err := store.Repair(ctx, store.RepairConfig{Dir: d.dir}); err != nil {
					t.Fatal(err)
				}
			}

			for round, kill := range []bool{false, true, false} {
				d.reopen()
				auditLog = d.open()
				old, _ := os.ReadFile(index)
				appendTo(auditLog, 41+10*round, 50+10*round)
				for n, id := range ids {
					_, err := auditLog.Find(ctx, id)
					if lost := n+1 == tt.lost; (err != nil) != lost {
						t.Errorf("start %d: find request %d: got error %v, want one: %v", round, n+1, err, lost)
					}
				}
				end(auditLog)
				if kill {
					if err := os.WriteFile(index, old, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				report, err := Verify(ctx, VerifyConfig{DataDir: d.dir, Signer: testKey})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, p := range report.Problems {
					got = append(got, p.Kind)
				}
				if fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("start %d: got problems %v, want %v", round, report.Problems, tt.want)
				}
				if want := uint64(50 + 10*round); report.Contents != want-min(1, uint64(tt.lost)) {
					t.Errorf("start %d: got %d contents, want those of %d requests without the lost one", round, report.Contents, want)
				}
			}
			if !strings.Contains(d.lines.String(), "the audit log does not match its head") {
				t.Errorf("got log %s, want the mismatch in it", d.lines.String())
			}
		})
	}
}

// flipBit flips a bit of the last occurrence of the text in a file.
func flipBit(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(data, []byte(text))
	if at < 0 {
		t.Fatalf("%s does not contain %s", path, text)
	}
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
