package app

import (
	"log"
	"log/slog"
	"os"
	"runtime/debug"
)

// gcPercent is the growth of the heap between two garbage collections. The live
// heap of a router with a small registry is a few MiB, so Go's default of 100
// would collect every hundred requests. If the registry is large, operators limit
// the memory with GOMEMLIMIT.
const gcPercent = 400

// configureProcess sets what belongs to the process rather than to a router. It is
// for a process that runs nothing else.
func configureProcess(logger *slog.Logger) {
	for _, name := range unknownEnvNames(os.Environ()) {
		logger.Warn("an environment variable looks like a configuration key and is none", "name", name)
	}
	log.SetFlags(0)
	log.SetOutput(libraryLogWriter{logger})
	if os.Getenv("GOGC") == "" { // the operator's value has precedence, like GOMEMLIMIT
		debug.SetGCPercent(gcPercent)
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
