package store

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog passes what the embedded server says to slog: its notices as debug,
// its warnings as warnings. It also listens for the server giving up, which the
// server tells in no other way.
type serverLog struct {
	log      *slog.Logger
	failures chan<- string

	mu       sync.Mutex
	lastText string
	isFatal  bool
}

func newServerLog(log *slog.Logger, sick chan<- string) *serverLog {
	return &serverLog{log: log, failures: sick}
}

// failureMessages are the words by which the server says that a stream, or all of
// them, takes no more writes until it is restarted.
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
				default: // the supervisor has been told already
				}
			}
		}
	}
	l.log.Log(context.Background(), level, "store: the engine says", "text", text)
}

// lastMessage is the last complaint.
func (l *serverLog) lastMessage() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastText == "" {
		return "it said nothing"
	}
	return l.lastText
}

// hasFailed reports whether the server said that it cannot go on. It leaves it to
// its logger to end the process, which this one does not.
func (l *serverLog) hasFailed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isFatal
}

// Fatalf takes note, and passes it on like an error.
func (l *serverLog) Fatalf(format string, args ...any) {
	l.mu.Lock()
	l.isFatal = true
	l.mu.Unlock()
	l.forward(slog.LevelError, format, args)
}

// Noticef passes on what the server does.
func (l *serverLog) Noticef(format string, args ...any) { l.forward(slog.LevelDebug, format, args) }

// Warnf passes on what the server finds odd.
func (l *serverLog) Warnf(format string, args ...any) { l.forward(slog.LevelWarn, format, args) }

// Errorf passes on what went wrong.
func (l *serverLog) Errorf(format string, args ...any) { l.forward(slog.LevelError, format, args) }

// Debugf drops it: there is too much of it.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef drops it: it holds what is stored.
func (l *serverLog) Tracef(string, ...any) {}
