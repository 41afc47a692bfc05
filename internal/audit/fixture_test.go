package audit

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// logFixture is a store with a log that can be opened repeatedly.
type logFixture struct {
	t     testing.TB
	dir   string
	store *store.Store
	log   *store.Log
	clock atomic.Int64 // seconds that the clock of the log is ahead
	lines bytes.Buffer // the log output
	lose  atomic.Pointer[appendFunc]
}

func newLogFixture(t testing.TB, change ...func(*store.Config)) *logFixture {
	t.Helper()
	d := &logFixture{t: t, dir: t.TempDir()}
	change = append([]func(*store.Config){func(c *store.Config) { c.Dir, c.SyncEvery = d.dir, time.Hour }}, change...)
	d.store = teststore.Open(t, change...)
	log, err := d.store.Log(t.Context(), LogConfig(0))
	if err != nil {
		t.Fatal(err)
	}
	d.log = log
	return d
}

func (d *logFixture) headFile() string { return filepath.Join(d.dir, HeadFile) }

func (d *logFixture) now() time.Time {
	return time.Now().Add(time.Duration(d.clock.Load()) * time.Second)
}

// open opens the log until the end of the test.
func (d *logFixture) open(change ...func(*Config)) *Log {
	d.t.Helper()
	cfg := Config{
		Log: d.log, Keys: teststore.Keys(), Signer: testKey, HeadFile: d.headFile(), Now: d.now,
		Logger: slog.New(slog.NewTextHandler(&d.lines, nil)),
	}
	for _, c := range change {
		c(&cfg)
	}
	auditLog, err := openLog(d.t.Context(), cfg, func(
		ctx context.Context, subject string, data []byte, opts store.AppendOptions,
	) (uint64, error) {
		if lose := d.lose.Load(); lose != nil {
			return (*lose)(ctx, subject, data, opts)
		}
		return d.log.Append(ctx, subject, data, opts)
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { d.close(auditLog) })
	return auditLog
}

func (d *logFixture) close(auditLog *Log) {
	d.t.Helper()
	if err := auditLog.Close(context.Background()); err != nil {
		d.t.Errorf("close: %v", err)
	}
}

// kill ends a log like a crash: without a closing record, and with the last written head.
func (d *logFixture) kill(auditLog *Log) {
	auditLog.once.Do(func() {
		auditLog.group.Stop(nil)
		if err := auditLog.group.Wait(); err != nil {
			d.t.Error(err)
		}
		_ = auditLog.head.file.Close()
	})
}

func (d *logFixture) append(auditLog *Log, records ...Record) {
	d.t.Helper()
	for _, rec := range records {
		if err := auditLog.Append(d.t.Context(), rec); err != nil {
			d.t.Fatalf("append: %v", err)
		}
	}
}

// verify returns the report of Verify after the head was written.
func (d *logFixture) verify() *Report {
	d.t.Helper()
	report, err := Verify(d.t.Context(), VerifyConfig{Log: d.log, HeadFile: d.headFile(), Signer: testKey})
	if err != nil {
		d.t.Fatal(err)
	}
	return report
}

// verifySigned verifies an idle log when its head has reached the end.
func (d *logFixture) verifySigned() (report *Report) {
	d.t.Helper()
	testkit.Eventually(d.t, "the head covers the end", func() bool {
		report = d.verify()
		return report.Unsigned == 0
	})
	return report
}

func (d *logFixture) checkVerified(records int) *Report {
	d.t.Helper()
	report := d.verify()
	for _, p := range report.Problems {
		d.t.Errorf("got problem %q, want none", p)
	}
	if report.Records != uint64(records) {
		d.t.Errorf("got %d records, want %d", report.Records, records)
	}
	return report
}

// ignored lists the fields that are set on reading.
var ignored = cmpopts.IgnoreFields(Record{}, "Position", "Writer")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
