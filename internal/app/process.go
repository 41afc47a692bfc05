package app

import (
	"log"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/caprouter/caprouter/internal/config"
)

// Growth of the heap between two garbage collections, in percent of the live heap. The
// live heap of a router that stores nothing is a few MiB, so Go's default would collect
// every thousand requests. A greater one grows by minHeapGrowth, or by Go's default.
const (
	maxGCPercent  = 400
	minGCPercent  = 100
	minHeapGrowth = 32 << 20
)

// gcPercent returns the growth for a live heap.
func gcPercent(live uint64) int {
	return int(min(maxGCPercent, max(minGCPercent, 100*minHeapGrowth/max(live, 1))))
}

// adjustGC sets the growth of the heap after each garbage collection. GOMEMLIMIT stays in
// force: near the limit, Go collects earlier.
func adjustGC() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	debug.SetGCPercent(gcPercent(sample[0].Value.Uint64()))
	marker := new([16]byte) // unreachable at the next collection; not a tiny allocation, which could be kept
	runtime.AddCleanup(marker, func(struct{}) { adjustGC() }, struct{}{})
}

// configureProcess sets what belongs to the process rather than to a router. It is
// for a process that runs nothing else.
func configureProcess(cfg *config.Config, logger *slog.Logger) {
	for _, name := range config.UnknownEnvNames(cfg, os.Environ()) {
		attrs := []any{"name", name}
		if near := config.NearestEnvName(name); near != "" {
			attrs = append(attrs, "did_you_mean", near)
		}
		logger.Warn("an environment variable looks like a configuration key and is none", attrs...)
	}
	log.SetFlags(0)
	log.SetOutput(libraryLogWriter{logger})
	if os.Getenv("GOGC") == "" { // the operator's value has precedence, like GOMEMLIMIT
		adjustGC()
	}
}

// libraryLogWriter replaces the output of the standard logger, which libraries
// use. net/http quotes bytes there that an agent has sent, and no text of an agent
// may reach the log, so only the length is logged.
type libraryLogWriter struct{ logger *slog.Logger }

// Write implements io.Writer.
func (w libraryLogWriter) Write(p []byte) (int, error) {
	w.logger.Warn("a library logged a message about a connection; its text is dropped because it may quote an agent", "bytes", len(p))
	return len(p), nil
}
