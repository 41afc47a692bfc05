package modelfile_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/modelfile"
)

func openDir(t *testing.T) (dir *modelfile.Dir, path string, log *bytes.Buffer) {
	t.Helper()
	data := t.TempDir()
	log = &bytes.Buffer{}
	return modelfile.New(data, slog.New(slog.NewTextHandler(log, nil))), filepath.Join(data, "lexical"), log
}

func encodeText(text string) func() []byte { return func() []byte { return []byte(text) } }

func TestDir_LoadsStoredModel(t *testing.T) {
	d, path, log := openDir(t)
	if got := d.Load("a"); got != nil {
		t.Errorf("got %q before anything was stored", got)
	}
	d.Store("a", encodeText("first"))
	d.Store("a", encodeText("second"))
	d.Store("b", encodeText(""))
	if got := d.Load("a"); string(got) != "second" {
		t.Errorf("got %q, want second", got)
	}
	if got := d.Load("b"); got == nil || len(got) > 0 {
		t.Errorf("got %q, want an empty model", got)
	}
	info, err := os.Stat(filepath.Join(path, "a.model"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	if log.Len() > 0 {
		t.Errorf("got log %q, want none", log)
	}
}

// A damaged file is reported and can be replaced.
func TestDir_IgnoresDamagedFiles(t *testing.T) {
	d, path, log := openDir(t)
	file := filepath.Join(path, "a.model")
	d.Store("a", encodeText("a model"))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, damaged := range [][]byte{nil, whole[:3], whole[:len(whole)-1], append(slices.Clone(whole), 0), bytes.Replace(whole, []byte("model"), []byte("modem"), 1)} {
		log.Reset()
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := d.Load("a"); got != nil || !strings.Contains(log.String(), "damaged") {
			t.Errorf("damage %d: got %q and log %q, want none and a message", i, got, log)
		}
	}
	d.Store("a", encodeText("a model"))
	if got := d.Load("a"); string(got) != "a model" {
		t.Errorf("got %q, want the new model", got)
	}
}

func TestDir_KeepsRecentlyUsedModels(t *testing.T) {
	d, path, _ := openDir(t)
	for i := range 4 {
		d.Store(fmt.Sprint(i), encodeText("model"))
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(path, fmt.Sprint(i)+".model"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	d.Load("0")
	d.Store("4", encodeText("model"))
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{"0.model", "2.model", "3.model", "4.model"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A directory that cannot be used causes a log message.
func TestDir_ReportsThatItCannotStore(t *testing.T) {
	d, path, log := openDir(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.Store("a", encodeText("model"))
	if got := d.Load("a"); got != nil || strings.Count(log.String(), "level=WARN") != 2 {
		t.Errorf("got %q and log %q, want none and two warnings", got, log)
	}
}
