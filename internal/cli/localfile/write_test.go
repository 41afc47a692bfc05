package localfile

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
)

// A link is kept, and its target is written, even if it is missing.
func TestWriteReport_FollowsLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"old.xml", "new.xml"} {
		file := filepath.Join(dir, "real", target)
		if target == "old.xml" {
			if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(dir, "link-"+target)
		if err := os.Symlink(filepath.Join("real", target), link); err != nil {
			t.Fatal(err)
		}
		if err := WriteReport(link, func(w io.Writer) error { _, err := io.WriteString(w, "written"); return err }); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(link); err != nil || to != filepath.Join("real", target) {
			t.Errorf("%s: got a link to %q, error %v, want it unchanged", link, to, err)
		}
		if data, _ := os.ReadFile(file); string(data) != "written" {
			t.Errorf("%s: got %q, want the written text", file, data)
		}
	}
	testkit.CheckFiles(t, filepath.Join(dir, "real"), map[string]string{"old.xml": "written", "new.xml": "written"})
}

// The check whether a file can be written changes no file and leaves none.
func TestCheckWritable_LeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.xml")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{old, filepath.Join(dir, "new.xml"), os.DevNull} {
		if err := CheckWritable(path); err != nil {
			t.Errorf("%s: got %v, want no error", path, err)
		}
	}
	testkit.CheckFiles(t, dir, map[string]string{"old.xml": "old"})
}

// A process that is killed leaves its temporary file. The next one removes it if it is so
// old that no process can use it.
func TestWriteAtomically_RemovesAbandonedTempFiles(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	names := map[string]bool{ // is kept
		".caprouter-123": false, ".caprouter-124": true, ".caprouter-": true, ".caprouter-notes1": true, ".caprouter-1.yaml": true,
	}
	for name := range names {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == ".caprouter-124" {
			continue // of a process that runs
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".caprouter-7"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, ".caprouter-7"), old, old); err != nil {
		t.Fatal(err)
	}
	names[".caprouter-7"] = true
	if err := Write(File{Path: filepath.Join(dir, "cases.yaml"), Content: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	for name, want := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: got kept %v, want %v", name, err == nil, want)
		}
	}
}
