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

// recordAt finds the record of a message in a block by its text. It returns the offsets of the
// record, of its text, and of the next record.
func recordAt(t testing.TB, block []byte, text string) (begin, data, end int) {
	t.Helper()
	if data = bytes.Index(block, []byte(text)); data < 0 {
		t.Fatalf("got no %q in the block, want a record with it", text)
	}
	for at := 0; at < len(block); {
		size := int(binary.LittleEndian.Uint32(block[at:]) &^ (1 << 31))
		if at+size > data {
			return at, data, at + size
		}
		at += size
	}
	t.Fatalf("got no record around %q, want one", text)
	return 0, 0, 0
}

func numberedText(n int) string { return fmt.Sprintf("message number %04d", n) }

// appendNumbered appends the messages from number from up to number to, exclusive.
func appendNumbered(t testing.TB, l *store.Log, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		appendText(t, l, fmt.Sprintf("log.%d", n%10), numberedText(n))
	}
}

// missingNumbers returns the numbers below n whose messages the log does not contain.
func missingNumbers(t testing.TB, l *store.Log, n int) []int {
	t.Helper()
	got := texts(t, l, store.ReadFrom{})
	if !slices.IsSorted(got) {
		t.Error("got unsorted messages, want them in order")
	}
	list := []int{}
	for i := range n {
		if _, ok := slices.BinarySearch(got, numberedText(i)); !ok {
			list = append(list, i)
		}
	}
	return list
}

// checkRefusalAndRepair opens a damaged store, which must return ErrNeeded without a change of
// files, and repairs it.
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
		t.Error("got changed files before the repair, want them unchanged")
	}
	done := must[[]repair.Stream](t)(store.Repair(t.Context(), store.RepairConfig{Dir: dir, Logger: log}))
	found := 0
	for i := range done {
		for j := range done[i].Damage {
			d := &done[i].Damage[j]
			if kept, err := os.ReadFile(d.Kept); err != nil || string(kept) != before[d.File] {
				t.Errorf("%s: got another kept file %q or error %v, want the original", d.File, d.Kept, err)
			}
			d.Kept = "" // a dry run has no kept files
			found++
		}
	}
	if diff := cmp.Diff(planned, done); diff != "" || found == 0 {
		t.Errorf("got %d repaired places, want some, as in the dry run (-dry +repair):\n%s", found, diff)
	}
}

// TestRepair_DamageNearEnd changes a file of a closed store with 1,000 messages, and appends 20.
// It compares which messages are missing after the repair, after a clean restart, and after a
// restart with an outdated index, as after SIGKILL.
func TestRepair_DamageNearEnd(t *testing.T) {
	t.Parallel()
	type span = [2]int // first and last message that may be missing
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
		name    string
		change  func(*testing.T, []byte) []byte
		lost    span
		logged  string
		refused bool // Open requires a repair by the operator
	}{
		{"no damage", func(_ *testing.T, b []byte) []byte { return b }, none, "", false},
		{"text", flip(middle, inText), span{500, 500}, "from=501 to=501", true},
		{"record length", flip(middle, inLength), span{500, 500}, "from=501 to=501", true},
		{"sequence", flip(middle, inSequence), span{500, 500}, "from=501 to=501", true},
		{"subject length", flip(middle, inSubjectLength), span{500, 500}, "from=501 to=501", true},
		{"header length", flip(middle, inHeaderLength), span{500, 500}, "from=501 to=501", true},
		{"hash", flip(middle, inHash), span{500, 500}, "from=501 to=501", true},
		{"text of the first record", flip(numberedText(0), inText), span{0, 0}, "from=1 to=1", true},
		{"text of the last record", flip(last, inText), span{999, 999}, "from=1000 to=1000", false},
		{"length of the last record", flip(last, inLength), span{999, 999}, "from=1000 to=1000", false},
		{"hash of the last record", flip(last, inHash), span{999, 999}, "from=1000 to=1000", false},
		{"torn tail", func(_ *testing.T, b []byte) []byte { return b[:len(b)-30] }, span{999, 999}, "from=1000 to=1000", false},
		{"torn tail and flipped byte", func(t *testing.T, b []byte) []byte {
			_, data, _ := recordAt(t, b, middle)
			b[data] ^= 1
			return b[:len(b)-30]
		}, span{500, 999}, "from=501 to=501", true},
		{"page of zeros", func(t *testing.T, b []byte) []byte {
			begin, _, _ := recordAt(t, b, middle)
			clear(b[begin+10 : begin+4106])
			return b
		}, span{500, 540}, "from=501", true},
		{"random bytes", func(_ *testing.T, b []byte) []byte { return randomBytes(len(b)) }, span{0, 999}, "stream=LOG", true},
		{"garbage after the end", func(_ *testing.T, b []byte) []byte { return append(b, randomBytes(300)...) }, none, "", false},
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
			if tt.refused {
				checkRefusalAndRepair(t, dir, log.logger(slog.LevelError))
			}
			s = open(t, dir, func(c *store.Config) { c.Logger = log.logger(slog.LevelError) })
			l := openLog(t, s, store.LogConfig{})
			lost := missingNumbers(t, l, 1000)
			if out := slices.DeleteFunc(slices.Clone(lost), func(n int) bool { return n >= tt.lost[0] && n <= tt.lost[1] }); len(out) > 0 {
				t.Errorf("got %d undamaged messages missing: %v", len(out), out)
			}
			if text := log.String(); !strings.Contains(text, tt.logged) || tt.logged == "" && text != "" {
				t.Errorf("got log %q, want one with %q", text, tt.logged)
			}
			if damage := l.Damage(); (len(damage) > 0) != (len(lost) > 0) {
				t.Errorf("got damage %v, want it to report the missing messages %v", damage, lost)
			}
			old, _ := os.ReadFile(index) // nil if the repair removed it
			appendNumbered(t, l, 1000, 1020)
			if info := must[store.LogInfo](t)(l.Info(t.Context())); info.Last != 1020 {
				t.Errorf("got last sequence %d, want 1020: sequences are not reused", info.Last)
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
					t.Errorf("missing messages after a restart, killed: %v (-before +after):\n%s", kill, diff)
				}
				if damage := l.Damage(); len(damage) > 0 {
					t.Errorf("after a restart: got damage %v, want none after the repair", damage)
				}
			}
		})
	}
}

// Open checks only the newest bytes of a file, unless the index is invalid: then the engine reads
// the whole file, too. In both cases, only the damaged messages are missing.
func TestRepair_DamageFarFromEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		at     []int // the damaged messages
		killed bool
		found  int // number of them that are found when the store is opened
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
			appendLarge := func(n int) { appendText(t, l, "log.a", numberedText(n)+string(make([]byte, 100_000))) }
			for n := range 200 {
				appendLarge(n)
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
				t.Errorf("got damage %v, want %d places", got, tt.found)
			}
			appendLarge(200)
			for range 2 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, dir)
				l = openLog(t, s, store.LogConfig{})
				got := texts(t, l, store.ReadFrom{})
				if want := 201 - len(tt.at); len(got) != want || !strings.HasPrefix(got[want-1], numberedText(200)) {
					t.Errorf("got %d messages, the last one %.20q; want %d and the appended one", len(got), got[len(got)-1], want)
				}
			}
			if info := must[store.LogInfo](t)(l.Info(t.Context())); !tt.killed && info.Last != 201 {
				t.Errorf("got last sequence %d, want 201: sequences are not reused", info.Last)
			}
		})
	}
}

// A repair of a bucket removes only the damaged value.
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
		wantErr(t, "get of the damaged value", err, store.ErrNotFound)
		must[uint64](t)(b.Create(ctx, fmt.Sprint("new.", round), nil))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// When the engine rebuilds its index after SIGKILL, its files contain old values of keys that were
// written several times or deleted.
func TestRepair_DeletedKeyStaysDeletedAfterKill(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir)
	b := bucket(t, s, store.BucketConfig{})
	index := streamFile(dir, "KV_BUCKET", "index.db")
	put := func(key, value string) { must[uint64](t)(b.Put(ctx, key, []byte(value))) }
	remove := func(key string) {
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
		remove(key)
	}
	put("again", "new")
	put("twice", "new")
	put("twice", "newer")
	remove("twice")
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

// The repair does not change intact files. They contain all kinds of records that the engine
// writes: erased, trimmed, purged and compacted messages, values and delete markers.
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
			writeFile(t, path, nil) // without an index, all blocks are checked
		}
		if damage, err := store.RepairAtStart(dir); len(damage) > 0 || err != nil {
			t.Fatalf("without an index: got damage %v and error %v, want none", damage, err)
		}
		for path, index := range indexes {
			writeFile(t, path, index)
		}
		if !maps.Equal(before, readBlocks(t, dir)) {
			t.Fatal("got changed files, want intact files unchanged")
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
		t.Errorf("got log %q, want none", log.String())
	}
}

// readBlocks returns the content of all message files by path.
func readBlocks(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range must[[]string](t)(filepath.Glob(streamFile(dir, "*", "*.blk"))) {
		all[path] = string(readFile(t, path))
	}
	return all
}
