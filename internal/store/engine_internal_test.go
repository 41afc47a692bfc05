package store

import (
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
)

// Open waits long enough for its connections, because a busy machine may stall for seconds.
func TestOpen_WaitsForConnections(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if got := s.engine.main.Opts.Timeout; got != startTimeout {
		t.Errorf("got connection timeout %v, want %v", got, startTimeout)
	}
}

// A stream that already has its configuration is not updated. An update writes and syncs files,
// and a start opens many streams.
func TestEnsureStream_LeavesUnchangedStreams(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, cfg := range []LogConfig{
		{Name: "PLAIN", Subjects: []string{"plain.>"}},
		{Name: "FULL", Subjects: []string{"full.>"}, MaxAge: time.Hour, Share: 0.1, Evict: true},
		{Name: "MEMORY", Subjects: []string{"memory.>"}, MaxAge: time.Second, Memory: true},
	} {
		if _, err := s.Log(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	for _, cfg := range []BucketConfig{{Name: "PLAIN"}, {Name: "FULL", MaxAge: time.Hour, Share: 0.1}, {Name: "TTL", KeyTTL: true}} {
		b, err := s.Bucket(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.ensureBlobs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.specs) != 9 {
		t.Errorf("got %d streams, want 9", len(s.specs))
	}
	for name, sp := range s.specs {
		stream, err := s.engine.js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		sp.Replicas, sp.FirstSeq = 1, stream.CachedInfo().Config.FirstSeq
		if !sp.isConfigOf(stream) {
			t.Errorf("%s: got configuration\n%+v\nwant\n%+v", name, stream.CachedInfo().Config, sp)
		}
		sp.MaxBytes += 100
		if sp.isConfigOf(stream) {
			t.Errorf("%s: isConfigOf = true with another MaxBytes, want false", name)
		}
	}
}

// A probe that succeeds while the server has reported another failure does not count, because the
// engine is going to be restarted for it.
func TestStore_StaysUnwritableUntilReportedFailureIsHandled(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.group.Stop(nil) // the test supervises the engine
	if err := s.group.Wait(); err != nil {
		t.Fatal(err)
	}
	why := "a critical write error"
	s.failedWrite.Store(&why)
	s.engine.failures <- why
	s.probeWrites(t.Context())
	if err := s.CheckWritable(); err == nil {
		t.Error("got a writable store with a failure that is not handled, want an error")
	}
	s.restartEngine(t.Context(), <-s.engine.failures)
	testkit.Eventually(t, "the store is writable after the restart", func() bool {
		s.probeWrites(t.Context())
		return s.CheckWritable() == nil
	})
}
