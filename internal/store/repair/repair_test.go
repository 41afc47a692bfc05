package repair

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/datadir"
)

const testEngine = "2.15.2"

// newFiles returns the files of a new directory, with one stream of one block.
func newFiles(t *testing.T, b *block) (files *Files, blockPath string) {
	t.Helper()
	dir := t.TempDir()
	files = &Files{
		Dir: dir, Engine: testEngine, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		DisplayName: func(stream string) string { return "log " + stream },
		IsBucket:    func(string) bool { return false },
	}
	writeTestFile(t, filepath.Join(dir, datadir.FormatFile), "format 1\nengine "+testEngine+"\n")
	blockPath = filepath.Join(dir, "store", "jetstream", "$G", "streams", "LOG", "msgs", "1.blk")
	writeTestFile(t, blockPath, string(b.data))
	return files, blockPath
}

func writeTestFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func readTestFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// newThreeRecords returns a block with three records, and the offsets of the last two.
func newThreeRecords(t *testing.T) (b *block, second, third int) {
	t.Helper()
	b = emptyBlock(t)
	b.append(1, "log.a", "", "the first")
	second = b.append(2, "log.a", "", "the second")
	third = b.append(3, "log.a", "", "the third")
	return b, second, third
}

func TestFiles_RepairAtStartRefusesDamageBeforeEnd(t *testing.T) {
	b, second, third := newThreeRecords(t)
	intact := string(b.data[:second]) + string(b.data[third:])
	b.data[second+recordHead+8] ^= 1
	damaged := string(b.data)
	files, path := newFiles(t, b)

	_, err := files.RepairAtStart(t.Context(), false)
	if !errors.Is(err, ErrNeeded) || !strings.Contains(err.Error(), "a repair would remove message 2 (45 bytes) of log LOG") {
		t.Errorf("at the start: got error %v, want ErrNeeded with the damaged message", err)
	}
	planned, err := files.RepairAll(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	want := []Stream{{Stream: "LOG", Name: "log LOG", Blocks: 1, Bytes: int64(len(damaged)), Damage: []FileDamage{
		{Stream: "LOG", File: path, Damage: Damage{From: 2, To: 2, Bytes: third - second}},
	}}}
	if diff := cmp.Diff(want, planned); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if readTestFile(t, path) != damaged {
		t.Error("got a changed file before the repair, want it unchanged")
	}

	done, err := files.RepairAll(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := readTestFile(t, path); got != intact {
		t.Errorf("got %d bytes after the repair, want the %d of the intact records", len(got), len(intact))
	}
	if got := readTestFile(t, done[0].Damage[0].Kept); got != damaged {
		t.Errorf("got a kept file of %d bytes, want the original", len(got))
	}
	if got, err := files.RepairAtStart(t.Context(), false); err != nil || len(got) > 0 {
		t.Errorf("at the start after the repair: got %v and error %v, want no damage", got, err)
	}
}

func TestFiles_RepairedListsDamageUntilForgotten(t *testing.T) {
	b, second, _ := newThreeRecords(t)
	b.data[second+recordHead+8] ^= 1
	files, _ := newFiles(t, b)
	if _, err := files.RepairAll(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []map[string][]Damage{{"LOG": {{From: 2, To: 2, Bytes: 45}}}, {}, {}} {
		got, err := files.Repaired()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("repaired damage (-want +got):\n%s", diff)
		}
		if err := files.ForgetRepaired(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFiles_RepairAtStartRemovesUnfinishedEnd(t *testing.T) {
	b, _, third := newThreeRecords(t)
	intact := string(b.data[:third])
	b.data = b.data[:len(b.data)-4]
	files, path := newFiles(t, b)
	if got, err := files.RepairAtStart(t.Context(), false); err != nil || len(got) > 0 {
		t.Errorf("got damage %v and error %v, want none: an unfinished write was not acknowledged", got, err)
	}
	if got := readTestFile(t, path); got != intact {
		t.Errorf("got %d bytes, want the %d of the intact records", len(got), len(intact))
	}
}

func TestFiles_KeepFilesOfOtherEngine(t *testing.T) {
	b, second, _ := newThreeRecords(t)
	b.data[second+recordHead+8] ^= 1
	files, path := newFiles(t, b)
	files.Engine = "2.16.0"
	if _, err := files.RepairAtStart(t.Context(), true); err != nil {
		t.Errorf("at the start: %v", err)
	}
	want := "storage engine 2.15.2 wrote the files of " + files.Dir + ", and this version knows those of 2.16.0"
	if _, err := files.RepairAll(t.Context(), false); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if readTestFile(t, path) != string(b.data) {
		t.Error("got a changed file, want it unchanged")
	}
}
