package app

import (
	"log/slog"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

func TestGCPercent(t *testing.T) {
	tests := []struct {
		name string
		live uint64
		want int
	}{
		{"never collected", 0, 400},
		{"small registry", 4 << 20, 400},
		{"medium registry", 16 << 20, 200},
		{"as large as the room", 32 << 20, 100},
		{"a million agents", 400 << 20, 100},
	}
	for _, tt := range tests {
		if got := gcPercent(tt.live); got != tt.want {
			t.Errorf("%s: got %d %%, want %d %%", tt.name, got, tt.want)
		}
	}
}

// TestNoTextOfALibraryIsLogged holds it for net/http, which quotes agents.
func TestNoTextOfALibraryIsLogged(t *testing.T) {
	var out lockedBuffer
	text := "Unsolicited response received on idle HTTP channel starting with \"secret\""
	if n, err := (libraryLogWriter{slog.New(slog.NewJSONHandler(&out, nil))}).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("got %d, %v, want %d and no error", n, err, len(text))
	}
	if got := out.String(); strings.Contains(got, "secret") || !strings.Contains(got, `"bytes":`+strconv.Itoa(len(text))) {
		t.Errorf("got log %q, want the size and no text", got)
	}
}

// TestTunerLooksAfterEveryCollection collects until the tuner has seen a large
// live heap.
func TestTunerLooksAfterEveryCollection(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	g := &gcTuner{}
	g.tune()
	large := make([]byte, 64<<20)
	eventually(t, "a large heap gets the default growth", func() bool {
		runtime.GC()
		return g.percent.Load() == leastPercent
	})
	runtime.KeepAlive(large)
}
