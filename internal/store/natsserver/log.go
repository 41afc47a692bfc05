package natsserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog forwards the server's log to slog, notices as debug. It also
// detects a failed server, which the server reports only in its log.
type serverLog struct {
	log      *slog.Logger
	failures chan<- string

	mu       sync.Mutex
	lastText string
	isFatal  bool
}

func newServerLog(log *slog.Logger, failures chan<- string) *serverLog {
	return &serverLog{log: log, failures: failures}
}

// failureMessages are parts of the messages after which a stream, or all of them,
// rejects writes until the server is restarted.
var failureMessages = []string{"critical write error", "will be DISABLED", "disabling JetStream"}

func (l *serverLog) forward(level slog.Level, format string, args []any) {
	text := fmt.Sprintf(format, args...)
	if level >= slog.LevelWarn {
		l.mu.Lock()
		l.lastText = text
		l.mu.Unlock()
		for _, words := range failureMessages {
			if strings.Contains(text, words) {
				select {
				case l.failures <- text:
				default: // the owner has not received the last failure, and will restart the server anyway
				}
			}
		}
	}
	l.log.Log(context.Background(), level, "store: engine", "text", text)
}

// lastMessage returns the last warning or error.
func (l *serverLog) lastMessage() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastText == "" {
		return "no message"
	}
	return l.lastText
}

// hasFailed reports whether the server logged a fatal error. It expects its logger
// to end the process, which this one does not.
func (l *serverLog) hasFailed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isFatal
}

// Fatalf records the failure and logs an error.
func (l *serverLog) Fatalf(format string, args ...any) {
	l.mu.Lock()
	l.isFatal = true
	l.mu.Unlock()
	l.forward(slog.LevelError, format, args)
}

// Noticef logs at level debug.
func (l *serverLog) Noticef(format string, args ...any) { l.forward(slog.LevelDebug, format, args) }

// Warnf logs a warning.
func (l *serverLog) Warnf(format string, args ...any) { l.forward(slog.LevelWarn, format, args) }

// Errorf logs an error.
func (l *serverLog) Errorf(format string, args ...any) { l.forward(slog.LevelError, format, args) }

// Debugf drops the message: there are too many.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef drops the message: it contains stored data.
func (l *serverLog) Tracef(string, ...any) {}
