package store_test

import (
	"errors"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// childRoleEnv is an environment variable. If it is set, the test binary runs as a child process
// in this role.
const childRoleEnv = "CAPROUTER_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childRoleEnv); role != "" {
		os.Exit(runChild(role))
	}
	goleak.VerifyTestMain(m)
}

func bucket(t testing.TB, s *store.Store, cfg store.BucketConfig) *store.Bucket {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "BUCKET"
	}
	b, err := s.Bucket(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openLog(t testing.TB, s *store.Store, cfg store.LogConfig) *store.Log {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name, cfg.Subjects = "LOG", []string{"log.>"}
	}
	l, err := s.Log(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wantErr(t interface {
	Helper()
	Errorf(string, ...any)
}, call string, got, want error,
) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", call, got, want)
	}
}

// must returns a function that fails the test if its second argument is an error, and returns
// the first one otherwise.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// keys returns the keys of a bucket with the prefix.
func keys(t testing.TB, b *store.Bucket, prefix string) []string {
	t.Helper()
	var got []string
	err := b.Scan(t.Context(), prefix, func(e store.Entry) error {
		got = append(got, e.Key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// texts returns the data of the messages in a log.
func texts(t testing.TB, l *store.Log, from store.ReadFrom) []string {
	t.Helper()
	var got []string
	err := l.Read(t.Context(), from, func(m store.Message) error {
		got = append(got, string(m.Data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// open opens a store in dir, so that a test can open the same directory several times.
func open(t testing.TB, dir string, change ...func(*store.Config)) *store.Store {
	t.Helper()
	return teststore.Open(t, append([]func(*store.Config){func(c *store.Config) { c.Dir = dir }}, change...)...)
}
