package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// A log or a bucket may be full although the store is not.
func TestStatus_ReportsFullBucket(t *testing.T) {
	ctx := t.Context()
	data := make([]byte, 10_000)
	for _, tt := range []struct {
		name  string
		full  string // name of the log or the bucket
		setUp func(s *store.Store) (write, free func() error)
	}{
		{"log", "LOG", func(s *store.Store) (func() error, func() error) {
			l := openLog(t, s, store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}, Share: 0.1})
			write := func() error { _, err := l.Append(ctx, "log.a", data, store.AppendOptions{}); return err }
			return write, func() error { return l.Trim(ctx, 10) }
		}},
		{"log, deleted messages", "LOG", func(s *store.Store) (func() error, func() error) {
			l := openLog(t, s, store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}, Share: 0.1})
			write := func() error { _, err := l.Append(ctx, "log.a", data, store.AppendOptions{}); return err }
			return write, func() error { return errors.Join(l.Delete(ctx, 1), l.Delete(ctx, 2)) }
		}},
		{"bucket", "BUCKET", func(s *store.Store) (func() error, func() error) {
			b := bucket(t, s, store.BucketConfig{Share: 0.1})
			n := 0
			write := func() error { n++; _, err := b.Put(ctx, strings.Repeat("a", n), data); return err }
			return write, func() error { return errors.Join(b.Delete(ctx, "a"), b.Delete(ctx, "aa")) }
		}},
		{"large values of a bucket", "BUCKET", func(s *store.Store) (func() error, func() error) {
			b := bucket(t, s, store.BucketConfig{Share: 0.1})
			large, n := randomBytes(600_000), 0
			write := func() error { n++; _, err := b.Put(ctx, strings.Repeat("a", n), large); return err }
			return write, func() error { return b.Delete(ctx, "a") }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := teststore.Open(t, func(c *store.Config) { c.MaxBytes = 10 << 20 })
			write, free := tt.setUp(s)
			if got := s.Status(); !got.Ready {
				t.Fatalf("empty: got %+v, want it ready", got)
			}
			fill(t, func(int) error { return write() })
			for range 2 { // Status does not change the status
				if got := s.Status(); got.Ready || !errors.Is(got.Err, store.ErrFull) || !strings.Contains(got.Err.Error(), tt.full) {
					t.Errorf("full: got %+v, want an error that names %s", got, tt.full)
				}
			}
			if err := free(); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "it is ready without another write", func() bool { return s.Status().Ready })
			if err := write(); err != nil {
				t.Errorf("write with free space: got error %v, want nil", err)
			}
			if got := s.Status(); !got.Ready {
				t.Errorf("after a write: got %+v, want it ready", got)
			}
		})
	}
}

// A smaller write that succeeds makes the store ready, also if the rejected write is not
// repeated.
func TestStatus_IsReadyAfterSmallerWrite(t *testing.T) {
	s := teststore.Open(t, func(c *store.Config) { c.MaxBytes = 10 << 20 })
	l := openLog(t, s, store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}, Share: 0.1})
	fill(t, func(int) error {
		_, err := l.Append(t.Context(), "log.a", make([]byte, 100_000), store.AppendOptions{})
		return err
	})
	if got := s.Status(); got.Ready {
		t.Error("full: got ready, want not ready")
	}
	appendText(t, l, "log.a", "smaller")
	if got := s.Status(); !got.Ready {
		t.Errorf("after a smaller write: got %+v, want it ready", got)
	}
}
