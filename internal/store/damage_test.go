package store_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
)

// damage changes each file of the engine that matches the pattern.
func damage(t *testing.T, dir, pattern string, change func([]byte) []byte) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "store", "jetstream", "$G", "streams", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("got no file for %s (%v)", pattern, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStore_OpensDamagedFiles(t *testing.T) {
	t.Parallel()
	flip := func(at func(size int) int) func([]byte) []byte {
		return func(data []byte) []byte {
			data[at(len(data))] ^= 0x40
			return data
		}
	}
	middle := func(size int) int { return size / 2 }
	for _, tt := range []struct {
		name    string
		pattern string
		change  func([]byte) []byte
		want    int  // at least, of 1,000 messages
		logged  bool // the log names the stream
		refused bool // Open requires a repair by the operator
	}{
		{"torn tail", "LOG/msgs/*.blk", func(d []byte) []byte { return d[:len(d)-70] }, 998, false, false},
		{"torn in the middle", "LOG/msgs/*.blk", func(d []byte) []byte { return d[:len(d)/2] }, 450, false, false},
		{"garbage after the end", "LOG/msgs/*.blk", func(d []byte) []byte { return append(d, randomBytes(300)...) }, 1000, false, false},
		{"byte flipped in the middle", "LOG/msgs/*.blk", flip(middle), 450, true, true},
		{"byte flipped at the end", "LOG/msgs/*.blk", flip(func(size int) int { return size - 3 }), 998, true, false},
		{"empty block", "LOG/msgs/*.blk", func([]byte) []byte { return nil }, 0, false, false},
		{"byte flipped in the index", "LOG/msgs/index.db", flip(middle), 1000, false, false},
		{"empty index", "LOG/msgs/index.db", func([]byte) []byte { return nil }, 1000, false, false},
		{"byte flipped in the configuration", "LOG/meta.inf", flip(middle), 1000, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			dir := t.TempDir()
			s := open(t, dir)
			l := openLog(t, s, store.LogConfig{})
			for i := range 1000 {
				appendText(t, l, fmt.Sprintf("log.%d", i%10), fmt.Sprintf("message number %04d", i))
			}
			other := bucket(t, s, store.BucketConfig{})
			must[uint64](t)(other.Put(ctx, "a", []byte("1")))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, dir, tt.pattern, tt.change)

			var log engineLog
			if tt.refused {
				checkRefusalAndRepair(t, dir, log.logger(slog.LevelWarn))
			}
			s = open(t, dir, func(c *store.Config) { c.Logger = log.logger(slog.LevelWarn) })
			l = openLog(t, s, store.LogConfig{})
			got := texts(t, l, store.ReadFrom{})
			if len(got) < tt.want {
				t.Errorf("got %d messages, want at least %d", len(got), tt.want)
			}
			for i, text := range got {
				var n int
				if _, err := fmt.Sscanf(text, "message number %d", &n); err != nil || i > 0 && text <= got[i-1] {
					t.Fatalf("message %d: got %q after %q, want increasing numbers", i, text, got[max(i-1, 0)])
				}
			}
			appendText(t, l, "log.new", "message number 9999")
			if got := must[store.Message](t)(l.Last(ctx, "log.>")); string(got.Data) != "message number 9999" {
				t.Errorf("last: got %q, want the message that was appended after the damage", got.Data)
			}
			if got := texts(t, l, store.ReadFrom{}); got[len(got)-1] != "message number 9999" {
				t.Errorf("read: got last message %q, want the one that was appended after the damage", got[len(got)-1])
			}
			if got := must[store.Entry](t)(bucket(t, s, store.BucketConfig{}).Get(ctx, "a")); string(got.Value) != "1" {
				t.Errorf("other bucket: got %q, want 1", got.Value)
			}
			if tt.logged && !strings.Contains(log.String(), "LOG") {
				t.Errorf("got log %q, want one that names LOG", log.String())
			}
		})
	}
}
