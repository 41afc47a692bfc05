package datadir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/datadir"
)

func TestReplica_KeepsName(t *testing.T) {
	random := regexp.MustCompile(`^r-[a-z0-9]{8}$`)
	names := map[string]bool{}
	for range 2 {
		dir := t.TempDir()
		name, err := datadir.Replica(dir, false)
		if err != nil || !random.MatchString(name) || names[name] {
			t.Fatalf("got %q and error %v, want a new random name", name, err)
		}
		names[name] = true
		if again, err := datadir.Replica(dir, true); err != nil || again != name {
			t.Errorf("second start: got %q and error %v, want %s", again, err, name)
		}
	}
}

func TestReplica_NamesUsedDirectoryMain(t *testing.T) {
	dir := t.TempDir()
	for _, used := range []bool{true, false} {
		if name, err := datadir.Replica(dir, used); err != nil || name != datadir.MainReplica {
			t.Errorf("got %q and error %v, want %s", name, err, datadir.MainReplica)
		}
	}
}

func TestReplica_RejectsInvalidName(t *testing.T) {
	for _, text := range []string{"", "A", "a.b", "-a", strings.Repeat("a", 33), "a b"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, datadir.ReplicaFile), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name, err := datadir.Replica(dir, true); err == nil || !strings.Contains(err.Error(), "write a name") {
			t.Errorf("%q: got %q and error %v, want the fix", text, name, err)
		}
	}
}
