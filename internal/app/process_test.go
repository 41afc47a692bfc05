package app

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// net/http quotes bytes of agents in its log messages.
func TestLibraryLogWriter_DropsText(t *testing.T) {
	var out testkit.LogBuffer
	text := "Unsolicited response received on idle HTTP channel starting with \"secret\""
	if n, err := (libraryLogWriter{slog.New(slog.NewJSONHandler(&out, nil))}).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("got %d, %v, want %d and no error", n, err, len(text))
	}
	if got := out.String(); strings.Contains(got, "secret") || !strings.Contains(got, `"bytes":`+strconv.Itoa(len(text))) {
		t.Errorf("got log %q, want the size and no text", got)
	}
}

func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 4 << 20: 400, 16 << 20: 200, 32 << 20: 100, 1 << 30: 100} {
		if got := gcPercent(live); got != want {
			t.Errorf("live heap of %d bytes: got %d, want %d", live, got, want)
		}
	}
}
