package store_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/store/repair"
)

// streamFile returns the path of a file of a stream.
func streamFile(dir, stream, name string) string {
	return filepath.Join(dir, "store", "jetstream", "$G", "streams", stream, "msgs", name)
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	return must[[]byte](t)(os.ReadFile(path))
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// recordAt finds the record of a message in a block by its text, and returns where
// the record begins, where its text begins, and where the next record begins.
func recordAt(t testing.TB, block []byte, text string) (begin, data, end int) {
	t.Helper()
	if data = bytes.Index(block, []byte(text)); data < 0 {
		t.Fatalf("no record with %q", text)
	}
	for at := 0; at < len(block); {
		size := int(binary.LittleEndian.Uint32(block[at:]) &^ (1 << 31))
		if at+size > data {
			return at, data, at + size
		}
		at += size
	}
	t.Fatalf("no record holds %q", text)
	return 0, 0, 0
}

func numberedText(n int) string { return fmt.Sprintf("message number %04d", n) }

// appendNumbered appends messages that contain their number.
func appendNumbered(t testing.TB, l *store.Log, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		appendText(t, l, fmt.Sprintf("log.%d", n%10), numberedText(n))
	}
}

// missingNumbers returns the messages up to n that the log does not contain.
func missingNumbers(t testing.TB, l *store.Log, n int) []int {
	t.Helper()
	got := texts(t, l, store.ReadFrom{})
	if !slices.IsSorted(got) {
		t.Error("the messages are not in order")
	}
	list := []int{}
	for i := range n {
		if _, ok := slices.BinarySearch(got, numberedText(i)); !ok {
			list = append(list, i)
		}
	}
	return list
}

// checkRefusalAndRepair opens a damaged store, which must fail without a change, and repairs
// it.
func checkRefusalAndRepair(t *testing.T, dir string, log *slog.Logger) {
	t.Helper()
	before := readBlocks(t, dir)
	_, err := store.Open(t.Context(), store.Config{Dir: dir})
	wantErr(t, "open", err, repair.ErrNeeded)
	if want := "run: caprouter store repair --data-dir " + dir; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got error %v, want it to end with %q", err, want)
	}
	planned := must[[]repair.Stream](t)(store.Repair(t.Context(), store.RepairConfig{Dir: dir, DryRun: true}))
	if !maps.Equal(before, readBlocks(t, dir)) {
		t.Error("files were changed before the repair")
	}
	done := must[[]repair.Stream](t)(store.Repair(t.Context(), store.RepairConfig{Dir: dir, Logger: log}))
	found := 0
	for i := range done {
		for j := range done[i].Damage {
			d := &done[i].Damage[j]
			if kept, err := os.ReadFile(d.Kept); err != nil || string(kept) != before[d.File] {
				t.Errorf("%s: got the kept file %q with error %v, want the original", d.File, d.Kept, err)
			}
			d.Kept = "" // which a dry run does not have
			found++
		}
	}
	if diff := cmp.Diff(planned, done); diff != "" || found == 0 {
		t.Errorf("repaired %d places, and the dry run differs (-dry +repair):\n%s", found, diff)
	}
}

// TestRepair_DamageNearTheEnd changes a file of a closed store and compares which
// of 1,000 messages, and of 20 appended ones, are lost after two restarts: one
// after a clean shutdown, and one after SIGKILL, when the engine's index is old.
func TestRepair_DamageNearTheEnd(t *testing.T) {
	t.Parallel()
	type span = [2]int // first and last message that may be lost
	none := span{1, 0}
	flip := func(text string, where func(begin, data, end int) int) func(*testing.T, []byte) []byte {
		return func(t *testing.T, block []byte) []byte {
			block[where(recordAt(t, block, text))] ^= 0x40
			return block
		}
	}
	inText := func(_, data, _ int) int { return data + 3 }
	inLength := func(begin, _, _ int) int { return begin }
	inSequence := func(begin, _, _ int) int { return begin + 4 }
	inSubjectLength := func(begin, _, _ int) int { return begin + 20 }
	inHeaderLength := func(begin, _, _ int) int { return begin + 22 + len("log.0") }
	inHash := func(_, _, end int) int { return end - 1 }
	middle, last := numberedText(500), numberedText(999)
	for _, tt := range []struct {
		name   string
		change func(*testing.T, []byte) []byte
		lost   span
		logged string
		refuse bool // the start refuses to repair it
	}{
		{"nothing", func(_ *testing.T, b []byte) []byte { return b }, none, "", false},
		{"a text", flip(middle, inText), span{500, 500}, "from=501 to=501", true},
		{"a length", flip(middle, inLength), span{500, 500}, "from=501 to=501", true},
		{"a sequence", flip(middle, inSequence), span{500, 500}, "from=501 to=501", true},
		{"the length of a subject", flip(middle, inSubjectLength), span{500, 500}, "from=501 to=501", true},
		{"the length of headers", flip(middle, inHeaderLength), span{500, 500}, "from=501 to=501", true},
		{"a hash", flip(middle, inHash), span{500, 500}, "from=501 to=501", true},
		{"the first text", flip(numberedText(0), inText), span{0, 0}, "from=1 to=1", true},
		{"the last text", flip(last, inText), span{999, 999}, "from=1000 to=1000", false},
		{"the last length", flip(last, inLength), span{999, 999}, "from=1000 to=1000", false},
		{"the last hash", flip(last, inHash), span{999, 999}, "from=1000 to=1000", false},
		{"torn", func(_ *testing.T, b []byte) []byte { return b[:len(b)-30] }, span{999, 999}, "from=1000 to=1000", false},
		{"torn and flipped", func(t *testing.T, b []byte) []byte {
			_, data, _ := recordAt(t, b, middle)
			b[data] ^= 1
			return b[:len(b)-30]
		}, span{500, 999}, "from=501 to=501", true},
		{"a page of zeros", func(t *testing.T, b []byte) []byte {
			begin, _, _ := recordAt(t, b, middle)
			clear(b[begin+10 : begin+4106])
			return b
		}, span{500, 540}, "from=501", true},
		{"all of it", func(_ *testing.T, b []byte) []byte { return randomBytes(len(b)) }, span{0, 999}, "stream=LOG", true},
		{"behind the end", func(_ *testing.T, b []byte) []byte { return append(b, randomBytes(300)...) }, none, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			block, index := streamFile(dir, "LOG", "1.blk"), streamFile(dir, "LOG", "index.db")
			s := open(t, dir)
			appendNumbered(t, openLog(t, s, store.LogConfig{}), 0, 1000)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			writeFile(t, block, tt.change(t, readFile(t, block)))

			var log engineLog
			if tt.refuse {
				checkRefusalAndRepair(t, dir, log.logger(slog.LevelError))
			}
			s = open(t, dir, func(c *store.Config) { c.Logger = log.logger(slog.LevelError) })
			l := openLog(t, s, store.LogConfig{})
			lost := missingNumbers(t, l, 1000)
			if out := slices.DeleteFunc(slices.Clone(lost), func(n int) bool { return n >= tt.lost[0] && n <= tt.lost[1] }); len(out) > 0 {
				t.Errorf("lost %d messages that are whole: %v", len(out), out)
			}
			if text := log.String(); !strings.Contains(text, tt.logged) || tt.logged == "" && text != "" {
				t.Errorf("logged %q, want %q", text, tt.logged)
			}
			if damage := l.Damage(); (len(damage) > 0) != (len(lost) > 0) {
				t.Errorf("got damage %v, lost are %v", damage, lost)
			}
			old, _ := os.ReadFile(index) // nil if it was removed
			appendNumbered(t, l, 1000, 1020)
			if info := must[store.LogInfo](t)(l.Info(t.Context())); info.Last != 1020 {
				t.Errorf("got last sequence %d, want 1020, because none is reused", info.Last)
			}
			for _, kill := range []bool{false, true} {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if kill {
					writeFile(t, index, old)
				}
				s = open(t, dir)
				l = openLog(t, s, store.LogConfig{})
				if diff := cmp.Diff(lost, missingNumbers(t, l, 1020)); diff != "" {
					t.Errorf("after a restart (killed: %v) others are missing (-before +after):\n%s", kill, diff)
				}
				if damage := l.Damage(); len(damage) > 0 {
					t.Errorf("after a restart: got damage %v, want none after the repair", damage)
				}
			}
		})
	}
}

// Damage before the newest bytes is found only if the engine reads the whole file
// as well, because its index is not valid. In both cases only the damaged message
// is lost.
func TestRepair_DamageFarFromTheEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		at     []int // the damaged messages
		killed bool
		found  int // of them, when the store is opened
	}{
		{"far", []int{10}, false, 0},
		{"far, and the index is old", []int{10}, true, 1},
		{"far and at the end", []int{10, 199}, false, 2},
		{"far and at the end, and the index is old", []int{10, 199}, true, 1}, // the damage at the end may be an unfinished write
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			l := openLog(t, s, store.LogConfig{})
			write := func(n int) { appendText(t, l, "log.a", numberedText(n)+string(make([]byte, 100_000))) }
			for n := range 200 {
				write(n)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			index := streamFile(dir, "LOG", "index.db")
			for _, path := range must[[]string](t)(filepath.Glob(streamFile(dir, "LOG", "*.blk"))) {
				data := readFile(t, path)
				for _, n := range tt.at {
					if at := bytes.Index(data, []byte(numberedText(n))); at >= 0 {
						data[at] ^= 1
					}
				}
				writeFile(t, path, data)
			}
			if tt.killed {
				writeFile(t, index, nil)
			}
			if tt.name != "far" {
				checkRefusalAndRepair(t, dir, nil)
			}
			s = open(t, dir)
			l = openLog(t, s, store.LogConfig{})
			if got := l.Damage(); len(got) != tt.found {
				t.Errorf("got damage %v, want %d of them", got, tt.found)
			}
			write(200)
			for range 2 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, dir)
				l = openLog(t, s, store.LogConfig{})
				got := texts(t, l, store.ReadFrom{})
				if want := 201 - len(tt.at); len(got) != want || !strings.HasPrefix(got[want-1], numberedText(200)) {
					t.Errorf("got %d messages, the last of them %.20q, want %d and the newest", len(got), got[len(got)-1], want)
				}
			}
			if info := must[store.LogInfo](t)(l.Info(t.Context())); !tt.killed && info.Last != 201 {
				t.Errorf("got last sequence %d, want 201, because none is reused", info.Last)
			}
		})
	}
}

// TestRepair_DamagedBucket loses the damaged value only.
func TestRepair_DamagedBucket(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir)
	b := bucket(t, s, store.BucketConfig{})
	for i := range 100 {
		must[uint64](t)(b.Put(ctx, fmt.Sprint("key.", i), []byte(numberedText(i))))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := streamFile(dir, "KV_BUCKET", "1.blk")
	data := readFile(t, path)
	_, at, _ := recordAt(t, data, numberedText(70))
	data[at] ^= 1
	writeFile(t, path, data)
	checkRefusalAndRepair(t, dir, nil)

	for round := range 3 {
		s = open(t, dir)
		b = bucket(t, s, store.BucketConfig{})
		if got, want := len(keys(t, b, "")), 99+round; got != want {
			t.Errorf("start %d: got %d keys, want %d", round, got, want)
		}
		_, err := b.Get(ctx, "key.70")
		wantErr(t, "the damaged value", err, store.ErrNotFound)
		must[uint64](t)(b.Create(ctx, fmt.Sprint("new.", round), nil))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// When the engine rebuilds its index, it finds old values of a key that was
// written several times.
func TestRepair_DeletedKeyStaysDeletedAfterKill(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir)
	b := bucket(t, s, store.BucketConfig{})
	index := streamFile(dir, "KV_BUCKET", "index.db")
	put := func(key, value string) { must[uint64](t)(b.Put(ctx, key, []byte(value))) }
	drop := func(key string) {
		if err := b.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	put("first", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old := readFile(t, index)
	s = open(t, dir)
	b = bucket(t, s, store.BucketConfig{})
	for i := range 5 {
		for _, key := range []string{"deleted", "kept", "again", "twice"} {
			put(key, fmt.Sprint(i))
		}
	}
	for _, key := range []string{"deleted", "again", "twice"} {
		drop(key)
	}
	put("again", "new")
	put("twice", "new")
	put("twice", "newer")
	drop("twice")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		writeFile(t, index, old) // as after SIGKILL
		s = open(t, dir)
		b = bucket(t, s, store.BucketConfig{})
		if diff := cmp.Diff([]string{"first", "kept", "again"}, keys(t, b, "")); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		for key, want := range map[string]string{"first": "1", "kept": "4", "again": "new"} {
			if got := must[store.Entry](t)(b.Get(ctx, key)); string(got.Value) != want {
				t.Errorf("%s: got %q, want %q", key, got.Value, want)
			}
		}
	}
}

// TestRepair_KeepsIntactFiles checks every kind of file that the engine writes:
// erased, trimmed, purged and compacted messages, values and markers.
func TestRepair_KeepsIntactFiles(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var log engineLog
	logged := func(c *store.Config) { c.Logger = log.logger(slog.LevelWarn) }
	s := open(t, dir, logged)
	l := openLog(t, s, store.LogConfig{Share: 0.01})
	b := bucket(t, s, store.BucketConfig{Share: 0.01})
	for i := range 300 {
		appendText(t, l, fmt.Sprintf("log.%d", i%10), string(randomBytes(10_000)))
		must[uint64](t)(b.Put(ctx, fmt.Sprint("key.", i%20), randomBytes(20_000)))
	}
	must[uint64](t)(b.Put(ctx, "large", randomBytes(2_000_000)))
	must[uint64](t)(b.Put(ctx, "once", nil))
	for _, seq := range []uint64{5, 100, 299, 300} {
		if err := l.Delete(ctx, seq); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{l.Trim(ctx, 20), l.Purge(ctx, "log.3"), b.Delete(ctx, "once"), b.Delete(ctx, "large")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want, wantKeys := texts(t, l, store.ReadFrom{}), keys(t, b, "")
	for range 3 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		before := readBlocks(t, dir)
		if damage, err := store.RepairAtStart(dir); len(damage) > 0 || err != nil {
			t.Fatalf("got damage %v and error %v, want none", damage, err)
		}
		indexes := map[string][]byte{}
		for _, path := range must[[]string](t)(filepath.Glob(streamFile(dir, "*", "index.db"))) {
			indexes[path] = readFile(t, path)
			writeFile(t, path, nil) // so that all blocks are checked
		}
		if damage, err := store.RepairAtStart(dir); len(damage) > 0 || err != nil {
			t.Fatalf("without an index: got damage %v and error %v, want none", damage, err)
		}
		for path, index := range indexes {
			writeFile(t, path, index)
		}
		if !maps.Equal(before, readBlocks(t, dir)) {
			t.Fatal("whole files were changed")
		}
		s = open(t, dir, logged)
		l, b = openLog(t, s, store.LogConfig{Share: 0.01}), bucket(t, s, store.BucketConfig{Share: 0.01})
		if got := texts(t, l, store.ReadFrom{}); !slices.Equal(got, want) {
			t.Errorf("got %d messages, want %d", len(got), len(want))
		}
		if diff := cmp.Diff(wantKeys, keys(t, b, "")); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	}
	if log.String() != "" {
		t.Errorf("logged %q, want nothing", log.String())
	}
}

// readBlocks reads all message files.
func readBlocks(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range must[[]string](t)(filepath.Glob(streamFile(dir, "*", "*.blk"))) {
		all[path] = string(readFile(t, path))
	}
	return all
}
