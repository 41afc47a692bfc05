package store

import "testing"

// A machine that stalls for seconds while the store opens is slow, not broken.
func TestOpen_WaitsForItsConnections(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if got := s.engine.main.Opts.Timeout; got != startTimeout {
		t.Errorf("got a timeout of %v to connect to the engine, want %v", got, startTimeout)
	}
}
