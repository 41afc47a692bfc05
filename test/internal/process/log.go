package process

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Lines of a router's log that [Process.WaitForLog] can wait for.
const (
	LogListening = "listening on "
	LogResumed   = `"msg":"open requests resumed"`
)

const tailLines = 20

// Log is the standard error of a router. It copies the log to a file, and keeps the
// last lines, the number of errors and the time of each awaited line. Its methods are
// safe for concurrent use.
type Log struct {
	file    *os.File
	awaited map[string]*awaitedLine // immutable

	mu      sync.Mutex
	partial []byte // a line without its end
	lines   []string
	errors  map[string]int // by message
	addr    string
}

type awaitedLine struct {
	seen chan struct{} // closed when the line is written
	at   time.Time     // written before seen is closed
}

func openLog(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Log{file: file, awaited: map[string]*awaitedLine{}, errors: map[string]int{}}
	for _, text := range []string{LogListening, LogResumed} {
		l.awaited[text] = &awaitedLine{seen: make(chan struct{})}
	}
	return l, nil
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte{'\n'})
		if !found {
			break
		}
		l.addLine(string(line), now)
		l.partial = rest
	}
	return l.file.Write(p)
}

func (l *Log) addLine(line string, now time.Time) {
	l.lines = append(l.lines, line)
	if len(l.lines) > tailLines {
		l.lines = l.lines[1:]
	}
	for text, awaited := range l.awaited {
		if _, after, ok := strings.Cut(line, text); ok && awaited.at.IsZero() {
			if text == LogListening {
				l.addr, _, _ = strings.Cut(after, `"`)
			}
			awaited.at = now
			close(awaited.seen)
		}
	}
	var entry struct {
		Level string `json:"level"`
		Msg   string `json:"msg"`
	}
	if err := strictjson.UnmarshalAllowUnknown([]byte(line), &entry); err != nil {
		entry.Level, entry.Msg = "ERROR", "not a line of the log: "+line
	}
	if entry.Level == "ERROR" {
		l.errors[entry.Msg]++
	}
}

func (l *Log) listenAddr() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addr
}

// Errors returns how often each error was logged, by message.
func (l *Log) Errors() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.errors)
}

// Tail returns the last lines.
func (l *Log) Tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *Log) close() error { return l.file.Close() }

// FormatCounts lists counts, the greatest first: "30 completed, 2 failed".
func FormatCounts(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}
