package process

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"
)

// Lines of a router's log that [Process.WaitForLog] can wait for.
const (
	LogListening = "listening on "
	LogResumed   = `"msg":"open requests resumed"`
)

const tailLines = 20

// routerLog is the standard error of a router. It copies the log to a file, and keeps
// the last lines and the time of each awaited line. Its methods are safe for concurrent
// use.
type routerLog struct {
	file    *os.File
	awaited map[string]*awaitedLine // immutable

	mu      sync.Mutex
	partial []byte // a line without its end
	lines   []string
	addr    string
}

type awaitedLine struct {
	seen chan struct{} // closed when the line is written
	at   time.Time     // written before seen is closed
}

func openLog(path string) (*routerLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &routerLog{file: file, awaited: map[string]*awaitedLine{
		LogListening: {seen: make(chan struct{})},
		LogResumed:   {seen: make(chan struct{})},
	}}, nil
}

// Write implements io.Writer.
func (l *routerLog) Write(p []byte) (int, error) {
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

func (l *routerLog) addLine(line string, now time.Time) {
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
}

func (l *routerLog) listenAddr() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addr
}

// tail returns the last lines.
func (l *routerLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *routerLog) close() error { return l.file.Close() }
