package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/caprouter/caprouter/internal/config"
)

// A directory in which no file can be created has the fix for the reason. Permissions are
// not to blame for a file system without inodes, or one that was mounted read-only.
func TestDiagnose_DistinguishesUnwritableDirectories(t *testing.T) {
	for name, tt := range map[string]struct {
		options string
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"no inodes": {"nr_inodes=20,mode=0700", useInodes, "df -i"},
		"read-only": {"mode=0700", remountReadOnly, "mount it writable"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("caprouter-test", dir, "tmpfs", 0, tt.options); err != nil {
				t.Skipf("needs the right to mount a file system: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			tt.prepare(t, dir)
			cfg := config.Default()
			cfg.DataDir = dir
			got := findings(t, cfg, nil)["data directory"]
			if got.Level != LevelFail || !strings.Contains(got.Fix, tt.want) || strings.Contains(got.Detail, ".doctor-") {
				t.Errorf("got %+v, want a failure with the fix %q and without the name of the probe", got, tt.want)
			}
		})
	}
}

// A disk without the space that the store reserves is reported before the data directory exists,
// too, but not if the store is on another server.
func TestDiagnose_ReportsFullDiskOfNewDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("caprouter-test", dir, "tmpfs", 0, "size=12m,mode=0700"); err != nil {
		t.Skipf("needs the right to mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	cfg := config.Default()
	cfg.DataDir = filepath.Join(dir, "router", "data")
	if got := findings(t, cfg, nil)["store"]; got.Level != LevelFail || !strings.Contains(got.Detail, "12 MiB free, and 64 MiB are reserved") {
		t.Errorf("got %+v, want a failure with both sizes", got)
	}
	cfg.Store.URL = "nats://127.0.0.1:4222"
	if got := findings(t, cfg, nil)["store"]; got.Level == LevelFail {
		t.Errorf("external store: got %+v, want no failure", got)
	}
}

func useInodes(t *testing.T, dir string) {
	t.Helper()
	for i := range 100 {
		file, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
	}
	t.Fatal("got 100 files, want no inode for them")
}

func remountReadOnly(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}
