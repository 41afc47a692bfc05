package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/caprouter/caprouter/internal/datadir"
	"github.com/caprouter/caprouter/internal/store"
)

// Open keeps the original of a damaged file, and does not change files of another version of
// the engine.
func TestOpen_KeepsDamagedFiles(t *testing.T) {
	for engine, want := range map[string]int{"2.14.9": 0, store.EngineVersion: 1} {
		dir := t.TempDir()
		s := must[*store.Store](t)(store.Open(t.Context(), store.Config{Dir: dir}))
		must[uint64](t)(bucket(t, s, store.BucketConfig{}).Put(t.Context(), "a", []byte("1")))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		blocks, err := filepath.Glob(filepath.Join(dir, "store", "jetstream", "$G", "streams", "KV_*", "msgs", "1.blk"))
		if err != nil || len(blocks) != 1 {
			t.Fatalf("got blocks %q and error %v, want one block", blocks, err)
		}
		torn := append(must[[]byte](t)(os.ReadFile(blocks[0])), "an unfinished write"...)
		if err := os.WriteFile(blocks[0], torn, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, datadir.FormatFile), []byte("format 1\nengine "+engine+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s = must[*store.Store](t)(store.Open(t.Context(), store.Config{Dir: dir}))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		kept, _ := filepath.Glob(filepath.Join(dir, "store", "damaged", "KV_*.1.*.blk.damaged"))
		if len(kept) != want {
			t.Errorf("engine %s: got kept files %q, want %d", engine, kept, want)
		}
		for _, path := range kept {
			if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, torn) {
				t.Errorf("engine %s: got %d bytes and error %v, want the %d original ones", engine, len(data), err, len(torn))
			}
		}
	}
}
