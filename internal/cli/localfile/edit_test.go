package localfile

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/run"
)

func TestApplyEdits_WritesAllOrNone(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	want := func(path, text string) {
		t.Helper()
		if data, _ := os.ReadFile(path); string(data) != text {
			t.Errorf("%s: got %q, want %q", path, data, text)
		}
	}
	write("a", "old")
	write("b", "edited meanwhile")
	a, b := Edit{"a", []byte("old"), []byte("new")}, Edit{"b", []byte("read"), []byte("new")}
	if err := ApplyEdits(t.Context(), []Edit{a, b}); err == nil || !strings.Contains(err.Error(), "b was changed meanwhile") {
		t.Errorf("got %v, want an error because b was changed", err)
	}
	want("a", "old")
	want("b", "edited meanwhile")

	b.Before = []byte("edited meanwhile")
	if err := ApplyEdits(t.Context(), []Edit{a, b, {"c", nil, []byte("created")}}); err != nil {
		t.Fatal(err)
	}
	want("a", "new")
	want("b", "new")
	want("c", "created")
	if info, err := os.Stat("a"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got mode %v, %v, want 0640 as before", info.Mode(), err)
	}
	if err := restoreFiles([]Edit{a, {"c", nil, nil}}); err != nil {
		t.Fatal(err)
	}
	want("a", "old")
	if _, err := os.Stat("c"); err == nil {
		t.Error("got c kept, want it removed")
	}
}

// Concurrent commands that edit one file do not overwrite each other: each writes, or fails because
// the file was changed meanwhile.
func TestApplyEdits_ConcurrentCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	const commands, lines = 8, 4
	run.ForEach(t.Context(), commands, commands, func(ctx context.Context, i int) {
		for written := 0; written < lines; {
			before, err := ReadForEdit("cases.yaml")
			if err != nil {
				t.Error(err)
				return
			}
			after := fmt.Appendf(slices.Clone(before), "line %d of %d\n", written, i)
			switch err := ApplyEdits(ctx, []Edit{{"cases.yaml", before, after}}); {
			case err == nil:
				written++
			case !strings.Contains(err.Error(), "changed meanwhile"):
				t.Error(err)
				return
			}
		}
	})
	data, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "\n"); got != commands*lines {
		t.Errorf("got %d lines, want %d, all that were reported as written", got, commands*lines)
	}
}
