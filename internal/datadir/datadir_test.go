package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/datadir"
)

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPrepare_ReportsEarlierUse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		used  bool
		want  string // the FORMAT file then
	}{
		{"empty", nil, false, "format 1\nengine 2.15.9\ncreating\n"},
		{"files of others", map[string]string{"notes.txt": ""}, false, "format 1\nengine 2.15.9\ncreating\n"},
		{"earlier version", map[string]string{"agent-signing.key": ""}, true, "format 1\nengine 2.15.2\n"},
		{"only a head", map[string]string{"audit.head": ""}, true, "format 1\nengine 2.15.2\n"},
		{"killed while it was created", map[string]string{"FORMAT": "format 1\ncreating\n", "agent-signing.key": ""}, false, "format 1\ncreating\n"},
		{"complete", map[string]string{"FORMAT": "format 1\nengine 2.15.0\n"}, true, "format 1\nengine 2.15.0\n"},
		{"unknown lines", map[string]string{"FORMAT": "format 1\nnote of a person\n"}, true, "format 1\nnote of a person\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.files {
				writeFile(t, dir, name, text)
			}
			used, err := datadir.Prepare(dir, "2.15.9")
			if err != nil || used != tt.used {
				t.Errorf("got used %v and error %v, want %v", used, err, tt.used)
			}
			if got, err := os.ReadFile(filepath.Join(dir, datadir.FormatFile)); err != nil || string(got) != tt.want {
				t.Errorf("got %q and error %v, want %q", got, err, tt.want)
			}
			if err := datadir.Complete(dir, "2.15.9"); err != nil {
				t.Fatal(err)
			}
			if engine, err := datadir.Engine(dir); err != nil || engine != "2.15.9" {
				t.Errorf("got engine %q and error %v, want 2.15.9", engine, err)
			}
			if used, err := datadir.Prepare(dir, "2.15.9"); err != nil || !used {
				t.Errorf("when it is complete: got used %v and error %v, want true", used, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
				t.Errorf("got temporary files %q, want none", left)
			}
		})
	}
}

func TestPrepare_RejectsUnknownFormat(t *testing.T) {
	for text, want := range map[string]string{
		"format 2\n": "data has format 2, and this version reads format 1", "": "does not begin with a line", "format x\n": "does not begin with a line",
		"format 0\n": "does not begin with a line", "engine 2.15.2\nformat 1\n": "does not begin with a line",
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, datadir.FormatFile, text)
		_, err := datadir.Prepare(dir, "2.15.9")
		if got := strings.ReplaceAll(errorText(err), filepath.Dir(dir)+"/", ""); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q: got error %q, want %q", text, got, want)
		}
		if newer := strings.HasPrefix(text, "format 2"); errors.Is(err, datadir.ErrNewer) != newer {
			t.Errorf("%q: got error %v, want ErrNewer: %v", text, err, newer)
		}
	}
}

func TestOpenFile_RejectsFilesOfOtherUsers(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	writeFile(t, dir, "file", "")
	for _, tt := range []struct {
		owner, file int
		want        string
	}{{0, 0, ""}, {0, 1234, "belongs to uid 1234; move it away, or change its owner"}, {1234, 1234, ""}, {1234, 0, ""}, {1234, 4321, "belongs to uid 4321"}} {
		if err := errors.Join(os.Chown(dir, tt.owner, -1), os.Chown(path, tt.file, -1)); err != nil {
			t.Fatal(err)
		}
		f, err := datadir.OpenFile(path, os.O_RDWR)
		if f != nil {
			_ = f.Close()
		}
		if got := errorText(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("file of user %d in a directory of user %d: got error %q, want %q", tt.file, tt.owner, got, tt.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCompareEngines_IgnoresPatches(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"2.15.2", "2.15.9", 0},
		{"2.15.0", "2.14.9", 1},
		{"2.9.1", "2.15.0", -1},
		{"3.0.0", "2.15.0", 1},
		{"", "2.15.0", -1},
		{"", "", 0},
	} {
		if got := datadir.CompareEngines(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
