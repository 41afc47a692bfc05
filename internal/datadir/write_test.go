package datadir_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/datadir"
)

func TestWriteFile_ReplacesFileAndAbandonedTempFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	writeFile(t, dir, "file", "old")
	writeFile(t, dir, "file.tmp", "half of what a killed process wrote, and longer than the new content")
	if err := os.Chmod(filepath.Join(dir, "file.tmp"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteFile(path, path+".tmp", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("got %q and error %v, want the new content", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("got mode %v and error %v, want 0600", info.Mode(), err)
	}
	if diff := cmp.Diff([]string{"file"}, filesIn(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestWriteFile_LeavesOldFileIfItCannotBeReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(path, "in a directory of this name"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteFile(path, path+".tmp", []byte("new")); err == nil {
		t.Error("got no error, want one of the rename")
	}
	temp, err := datadir.WriteTemp(dir, "temp-*", []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	if err := datadir.Rename(temp, path); err == nil {
		t.Error("got no error, want one of the rename")
	}
	if diff := cmp.Diff([]string{"file"}, filesIn(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
