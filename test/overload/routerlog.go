package main

import (
	"bytes"
	"maps"
	"os"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// markListening is the line of a router's log that says where it listens.
const markListening = "listening on "

// tailLines is how many lines are shown of the log of a router that failed.
const tailLines = 20

// routerLog is the standard error of a router: it writes it to a file, notices
// the address, and counts the errors.
type routerLog struct {
	file    *os.File
	listens chan struct{} // closed when addr is known
	addr    string

	mu     sync.Mutex
	rest   []byte // of the last line
	lines  []string
	errors map[string]int
}

func openLog(path string) (*routerLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &routerLog{file: file, listens: make(chan struct{}), errors: map[string]int{}}, nil
}

// Write implements io.Writer.
func (l *routerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte{'\n'})
		if !whole {
			break
		}
		l.take(string(line))
		l.rest = rest
	}
	return l.file.Write(p)
}

func (l *routerLog) take(line string) {
	l.lines = append(l.lines, line)
	if len(l.lines) > tailLines {
		l.lines = l.lines[1:]
	}
	if _, after, ok := strings.Cut(line, markListening); ok && l.addr == "" {
		l.addr, _, _ = strings.Cut(after, `"`)
		close(l.listens)
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
