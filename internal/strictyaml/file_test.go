package strictyaml

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFile_ReadsRegularFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	if err := os.WriteFile(path, []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := ReadFile(path)
	if err != nil || string(data) != "version: 1\n" {
		t.Errorf("ReadFile: got %q and error %v, want the content", data, err)
	}

	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(link); err != nil || len(data) == 0 {
		t.Errorf("ReadFile through a link: got %q and error %v, want the content", data, err)
	}

	if _, err := ReadFile(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of an absent file: got error %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := ReadFile(dir); !isErrors(err) {
		t.Errorf("ReadFile of a directory: got error %v, want Errors", err)
	}
}

// A file of 100 MB is rejected because of its size, without being read. It is a
// sparse file.
func TestReadFile_RejectsLargeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.yaml")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(100<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = ReadFile(path)
	if want := path + ": is 104857600 bytes long; at most 67108864 are read"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func isErrors(err error) bool {
	_, ok := errors.AsType[Errors](err)
	return ok
}
