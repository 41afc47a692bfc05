package golden

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yaml": oneCase("a"), "below/b.csv": "input\nx\n", "below/notes.md": "", "m.cassette.jsonl": "",
	})
	got, err := ListFiles([]string{dir, filepath.Join(dir, "a.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "below", "b.csv"), filepath.Join(dir, "a.yaml")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ListFiles([]string{filepath.Join(dir, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error for the missing file", err)
	}
}
