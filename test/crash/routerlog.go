package main

import (
	"bytes"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// What of a router's log is waited for.
const (
	markListening = "listening on "
	markTakenOver = "open requests were taken over"
)

// tailLines is how many lines are shown of the log of a router that failed.
const tailLines = 20

// routerLog is the standard error of one life of a router: it writes it to a
// file, notices the marks, and counts the errors.
type routerLog struct {
	file  *os.File
	marks map[string]*logMark // never changes

	mu     sync.Mutex
	rest   []byte // a line that has not ended
	lines  []string
	errors map[string]int // message → times
	listen string
}

// logMark is a line that is waited for.
type logMark struct {
	seen chan struct{} // closed when the line has come
	at   time.Time     // set before
}

func openLog(path string) (*routerLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	l := &routerLog{file: file, marks: map[string]*logMark{}, errors: map[string]int{}}
	for _, mark := range []string{markListening, markTakenOver} {
		l.marks[mark] = &logMark{seen: make(chan struct{})}
	}
	return l, nil
}

// Write takes what the router writes, in whatever pieces it comes.
func (l *routerLog) Write(p []byte) (int, error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte{'\n'})
		if !whole {
			break
		}
		l.take(string(line), now)
		l.rest = rest
	}
	return l.file.Write(p)
}

func (l *routerLog) take(line string, now time.Time) {
	l.lines = append(l.lines, line)
	if len(l.lines) > tailLines {
		l.lines = l.lines[1:]
	}
	for text, mark := range l.marks {
		if _, after, ok := strings.Cut(line, text); ok && mark.at.IsZero() {
			if text == markListening {
				l.listen, _, _ = strings.Cut(after, `"`)
			}
			mark.at = now
			close(mark.seen)
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

// addr is where the router says it listens.
func (l *routerLog) addr() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listen
}

// complaints are the errors the router logged, by message.
func (l *routerLog) complaints() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.errors)
}

func (l *routerLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *routerLog) close() error { return l.file.Close() }
