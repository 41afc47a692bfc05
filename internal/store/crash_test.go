package store_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
)

// A writing process is killed several times. The next one uses the same files.
func TestStore_KeepsAcknowledgedWritesAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acknowledged []string
	for round := range 6 {
		writer := startChild(t, "write", dir)
		for range 40 + 20*round {
			if !writer.lines.Scan() {
				t.Fatal("got the end of the writing process, want it to run until it is killed")
			}
			acknowledged = append(acknowledged, writer.lines.Text())
		}
		if err := writer.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for writer.lines.Scan() { // lines that it printed before it was killed
			acknowledged = append(acknowledged, writer.lines.Text())
		}
		writer.kill()
	}

	s := open(t, dir)
	stored := map[string]bool{}
	for _, key := range keys(t, bucket(t, s, store.BucketConfig{}), "") {
		stored[key] = true
	}
	for _, text := range texts(t, openLog(t, s, store.LogConfig{}), store.ReadFrom{}) {
		stored[text] = true
	}
	var lost []string
	for _, key := range acknowledged {
		if strings.Count(key, ".") == 2 && !stored[key] {
			lost = append(lost, key)
		}
	}
	if len(lost) > 0 {
		t.Errorf("got no value for %d of %d acknowledged writes: %q", len(lost), len(acknowledged), lost)
	}
	if len(acknowledged) < 500 {
		t.Errorf("got %d acknowledged writes, want 500 or more", len(acknowledged))
	}
}
