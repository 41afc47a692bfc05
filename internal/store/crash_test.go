package store_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
)

// TestStore_KeepsAcknowledgedWritesAfterKill repeatedly kills a writing process
// that uses the same files.
func TestStore_KeepsAcknowledgedWritesAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acknowledged []string
	for round := range 6 {
		writer := startChild(t, "write", dir)
		for range 40 + 20*round {
			if !writer.lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
			acknowledged = append(acknowledged, writer.lines.Text())
		}
		if err := writer.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for writer.lines.Scan() { // its output before it was killed
			acknowledged = append(acknowledged, writer.lines.Text())
		}
		writer.kill()
	}

	s := open(t, dir)
	there := map[string]bool{}
	for _, key := range keys(t, bucket(t, s, store.BucketConfig{}), "") {
		there[key] = true
	}
	for _, text := range texts(t, openLog(t, s, store.LogConfig{}), store.ReadFrom{}) {
		there[text] = true
	}
	var lost []string
	for _, key := range acknowledged {
		if strings.Count(key, ".") == 2 && !there[key] {
			lost = append(lost, key)
		}
	}
	if len(lost) > 0 {
		t.Errorf("got %d of %d acknowledged writes lost: %q", len(lost), len(acknowledged), lost)
	}
	if len(acknowledged) < 500 {
		t.Errorf("only %d writes were acknowledged", len(acknowledged))
	}
}
