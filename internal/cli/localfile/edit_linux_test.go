package localfile

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestReadForEdit_RejectsNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	want := path + ": it is not a regular file and cannot be edited"
	if _, err := ReadForEdit(path); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}
