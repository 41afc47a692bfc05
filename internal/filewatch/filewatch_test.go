package filewatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
)

// watchedFile is a Watcher on a real file whose reports can be waited for. A
// report is the content of the file, or "error: …".
type watchedFile struct {
	*Watcher
	t       *testing.T
	path    string
	reports chan string
}

// newWatchedFile creates the file and a Watcher that has read it.
func newWatchedFile(t *testing.T, path, content string) *watchedFile {
	t.Helper()
	w := &watchedFile{t: t, path: path, reports: make(chan string, 4096)}
	if content != "" {
		w.write(content)
	}
	var err error
	w.Watcher, err = New(Config{Path: path, Debounce: 5 * time.Millisecond, Poll: 20 * time.Millisecond, OnChange: w.report})
	requireNoError(t, err)
	w.Check()
	w.wantReport("first")
	return w
}

func (w *watchedFile) report(content []byte, err error) {
	if err != nil {
		content = []byte("error: " + err.Error())
	}
	w.reports <- string(content)
}

// run watches until the test ends.
func (w *watchedFile) run() *watchedFile {
	ended := make(chan error, 1)
	go func() { ended <- w.Run(w.t.Context()) }()
	w.t.Cleanup(func() { // the context ended at this moment
		if err := testkit.Receive(w.t, ended); err != nil {
			w.t.Errorf("Run: got error %v, want none", err)
		}
	})
	return w
}

// write writes the file in place.
func (w *watchedFile) write(content string) { writeFile(w.t, w.path, content) }

// replace writes another file and renames it over, as editors do.
func (w *watchedFile) replace(content string) {
	w.t.Helper()
	next := filepath.Join(filepath.Dir(w.path), "next.tmp")
	writeFile(w.t, next, content)
	requireNoError(w.t, os.Rename(next, w.path))
}

// wantReport waits for the next report.
func (w *watchedFile) wantReport(content string) {
	w.t.Helper()
	if got := testkit.Receive(w.t, w.reports); got != content {
		w.t.Fatalf("reported %q, want %q", got, content)
	}
}

// waitForReport skips reports of intermediate states.
func (w *watchedFile) waitForReport(content string) {
	w.t.Helper()
	for testkit.Receive(w.t, w.reports) != content {
	}
}

func (w *watchedFile) wantError(text string) {
	w.t.Helper()
	if got := testkit.Receive(w.t, w.reports); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, text) {
		w.t.Fatalf("reported %q, want an error with %q", got, text)
	}
}

func (w *watchedFile) wantNoReport() {
	w.t.Helper()
	select {
	case got := <-w.reports:
		w.t.Errorf("reported %q, want no report", got)
	default:
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	requireNoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "file.yaml") }

func TestNew_RequiresPathAndCallback(t *testing.T) {
	for _, cfg := range []Config{{}, {Path: "x"}, {OnChange: func([]byte, error) {}}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New(%+v): got no error", cfg)
		}
	}
}

func TestCheck_ReportsNewContentOnce(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first")
	w.Check()
	w.wantNoReport()
	w.write("second")
	w.Check()
	w.wantReport("second")
	w.Check()
	w.wantNoReport()
}

func TestCheck_ReportsErrorOnce(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first")
	requireNoError(t, os.Remove(w.path))
	for range 3 {
		w.Check()
	}
	w.wantError("no such file")
	w.wantNoReport()
	w.write("first")
	w.Check()
	w.wantReport("first")
}

func TestCheck_ReportsEachContentOnceToConcurrentCallers(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first").run()
	w.replace("second")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				w.Check()
			}
		})
	}
	wg.Wait()
	w.wantReport("second")
	w.wantNoReport()
}

// A poll reads a file only if its stat has changed, as soon as the stat is
// reliable.
func TestCheckIfTouched_TrustsAnOldStat(t *testing.T) {
	path := newPath(t)
	old := time.Now().Add(-time.Hour)
	w := newWatchedFile(t, path, "first")
	requireNoError(t, os.Chtimes(path, old, old))
	w.Check() // with the old stat

	w.write("other")
	requireNoError(t, os.Chtimes(path, old, old))
	w.checkIfTouched()
	w.wantNoReport()
	w.Check()
	w.wantReport("other")
	for _, change := range []struct {
		name, content string
		make          func(content string) error
	}{
		{"time", "third", func(content string) error { writeFile(t, path, content); return nil }},
		{"size", "longer", func(content string) error { writeFile(t, path, content); return os.Chtimes(path, old, old) }},
		{"file", "fourth", func(content string) error {
			writeFile(t, path+"2", content)
			return errors.Join(os.Chtimes(path+"2", old, old), os.Rename(path+"2", path))
		}},
	} {
		requireNoError(t, change.make(change.content))
		w.checkIfTouched()
		w.wantReport(change.content)
		requireNoError(t, os.Chtimes(path, old, old))
		w.Check()
	}
}

func TestRun_SeesRename(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first").run()
	for i := range 5 {
		content := fmt.Sprintf("content %d", i)
		w.replace(content)
		w.wantReport(content)
	}
}

// A write in place empties the file first, which may be reported as well.
func TestRun_SeesWriteInPlace(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first").run()
	w.write("second")
	w.waitForReport("second")
}

func TestRun_SeesSecondHalfOfFile(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first").run()
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_TRUNC, 0)
	requireNoError(t, err)
	defer f.Close()
	_, err = f.WriteString("half")
	requireNoError(t, err)
	w.waitForReport("half")
	_, err = f.WriteString(" and half")
	requireNoError(t, err)
	w.wantReport("half and half")
}

// Kubernetes writes a volume into a new directory and changes the link "..data", which the
// link of the file points through.
func TestRun_SeesSwappedLink(t *testing.T) {
	dir := t.TempDir()
	volume := func(name, content string) {
		requireNoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		writeFile(t, filepath.Join(dir, name, "file.yaml"), content)
		requireNoError(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		requireNoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	volume("..v1", "first")
	path := filepath.Join(dir, "file.yaml")
	requireNoError(t, os.Symlink(filepath.Join("..data", "file.yaml"), path))

	w := newWatchedFile(t, path, "").run()
	volume("..v2", "second")
	w.wantReport("second")
	volume("..v3", "third")
	requireNoError(t, os.RemoveAll(filepath.Join(dir, "..v1")))
	w.wantReport("third")
}

// A change of a file in another directory, reached through a link, causes no event.
func TestRun_Polls(t *testing.T) {
	elsewhere := newPath(t)
	writeFile(t, elsewhere, "first")
	path := newPath(t)
	requireNoError(t, os.Symlink(elsewhere, path))
	w := newWatchedFile(t, path, "").run()
	writeFile(t, elsewhere, "second")
	w.waitForReport("second")
}

func TestRun_SeesRemovedAndCreatedFile(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first").run()
	requireNoError(t, os.Remove(w.path))
	w.wantError("no such file")
	w.replace("first")
	w.wantReport("first")
}

func TestRun_SeesFileOfRecreatedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	requireNoError(t, os.Mkdir(dir, 0o700))
	w := newWatchedFile(t, filepath.Join(dir, "file.yaml"), "first").run()
	requireNoError(t, os.RemoveAll(dir))
	w.wantError("no such file")
	requireNoError(t, os.Mkdir(dir, 0o700))
	w.replace("second")
	w.wantReport("second")
	w.replace("third")
	w.wantReport("third")
}

func TestRun_ReportsLastOfManyVersions(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first").run()
	for i := range 1000 {
		if i%2 == 0 {
			w.replace(fmt.Sprintf("content %d", i))
		} else {
			w.write(fmt.Sprintf("content %d", i))
		}
	}
	w.replace("last")
	w.waitForReport("last")
	w.Check()
	w.wantNoReport()
}

// Changes between the first Check and Run are not lost.
func TestRun_ChecksAtOnce(t *testing.T) {
	w := newWatchedFile(t, newPath(t), "first")
	w.cfg.Poll = time.Hour
	w.replace("second")
	w.run().wantReport("second")
}

func TestDebouncer_BoundsTheDelay(t *testing.T) {
	start := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	const quiet = 100 * time.Millisecond
	d := eventDebouncer{quiet: quiet}
	if d.isPending() {
		t.Error("before any event: got pending")
	}
	for _, tt := range []struct{ after, want time.Duration }{
		{0, quiet},
		{50 * time.Millisecond, quiet},
		{899 * time.Millisecond, quiet},
		{950 * time.Millisecond, 50 * time.Millisecond}, // the bound is a second after the first event
		{1000 * time.Millisecond, 0},
		{5000 * time.Millisecond, 0},
	} {
		if got := d.nextDelay(start.Add(tt.after)); got != tt.want || !d.isPending() {
			t.Errorf("event after %v: got a delay of %v, pending %v, want %v, pending", tt.after, got, d.isPending(), tt.want)
		}
	}
	d.clearPending()
	if d.isPending() {
		t.Error("after reset: got pending")
	}
	if got := d.nextDelay(start.Add(time.Hour)); got != quiet {
		t.Errorf("next event: got a delay of %v, want %v", got, quiet)
	}
}
