package app

import (
	"log"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// configureProcess sets what belongs to the process rather than to a router, for a
// process that has nothing else to do.
func configureProcess(logger *slog.Logger) {
	for _, name := range unknownEnvNames(os.Environ()) {
		logger.Warn("an environment variable looks like a configuration key and is none", "name", name)
	}
	log.SetFlags(0)
	log.SetOutput(libraryLogWriter{logger})
	if os.Getenv("GOGC") == "" { // an operator's word wins
		(&gcTuner{}).tune()
	}
}

// libraryLogWriter takes what libraries write to the standard logger. net/http quotes
// bytes there that an agent has sent, and no text of an agent may reach the log:
// that there was something is all it tells.
type libraryLogWriter struct{ logger *slog.Logger }

// Write implements io.Writer.
func (s libraryLogWriter) Write(p []byte) (int, error) {
	s.logger.Warn("a library had something to say about a connection; its text may be an agent's and is dropped", "bytes", len(p))
	return len(p), nil
}

// The live heap of a router with a small registry is a few MiB, and at Go's
// default of 100 % growth it would be collected every hundred requests. A tenth
// of the CPU and more goes there (`make bench`), for memory nobody misses.
const (
	heapRoom     = 32 << 20 // bytes of growth that are always allowed
	leastPercent = 100      // Go's default: what a large heap gets
	mostPercent  = 400
)

// gcTuner lets the heap grow by heapRoom between collections. It looks after
// every collection, because a heap that was small may hold large results now.
type gcTuner struct{ percent atomic.Int64 }

func (g *gcTuner) tune() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if p := gcPercent(live[0].Value.Uint64()); g.percent.Swap(int64(p)) != int64(p) {
		debug.SetGCPercent(p)
	}
	// The next collection finds this unreachable and calls tune again.
	runtime.AddCleanup(&gcSentinel{}, func(g *gcTuner) { g.tune() }, g)
}

// gcSentinel has a pointer and a size of its own, so that it shares its memory
// with nothing that lives on.
type gcSentinel struct {
	_ *gcSentinel
	_ [3]uintptr
}

// gcPercent is the growth for a live heap of so many bytes; 0 is one that has
// never been collected.
func gcPercent(live uint64) int {
	return int(min(max(100*heapRoom/max(live, 1), leastPercent), mostPercent))
}
