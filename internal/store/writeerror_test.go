//go:build linux

package store_test

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A child process limits the size of its files, so that writes fail.
func TestStore_RecoversFromWriteErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startChild(t, "limit", dir)
	p.expect(t, "recovered")
	p.kill()
	got := keys(t, bucket(t, open(t, dir), store.BucketConfig{}), "")
	if len(got) < 2 || got[0] != "before" || got[len(got)-1] != "after" {
		t.Errorf("got keys %q, want before first and after last", got)
	}
}

// exceedFileSizeLimit lowers the limit of the file size until a write fails, restores it, and
// writes again.
func exceedFileSizeLimit(s *store.Store) int {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	b, err := s.Bucket(ctx, store.BucketConfig{Name: "BUCKET"})
	if err != nil {
		return 1
	}
	if _, err := b.Put(ctx, "before", make([]byte, 1000)); err != nil {
		return 1
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return 1
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1100, Max: old.Max}); err != nil {
		return 1
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	_, err = b.Put(short, "during", make([]byte, 1000))
	cancel()
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrFull) {
		fmt.Println("write beyond the limit:", err)
		return 1
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return 1
	}
	patient, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	if _, err := b.Put(patient, "after", nil); err != nil {
		fmt.Println("write without the limit:", err)
		return 1
	}
	fmt.Println("recovered")
	return 0
}
