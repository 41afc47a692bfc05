package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// SSE is one event of a stream of server-sent events as a reader receives it, or
// one comment.
type SSE struct {
	ID, Name, Data string
	Comment        string // of a block without other fields
}

// SSEReader parses server-sent events (HTML §9.2), one line per field.
type SSEReader struct{ lines *bufio.Reader }

// NewSSEReader returns a reader of the events in r.
func NewSSEReader(r io.Reader) *SSEReader { return &SSEReader{bufio.NewReader(r)} }

// Next returns the next event or comment. At the end of the stream it returns
// io.EOF.
func (r *SSEReader) Next() (SSE, error) {
	var ev SSE
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			if ev != (SSE{}) || line != "" {
				return ev, errors.New("the stream ends within an event")
			}
			return ev, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return ev, nil
		}
		name, value, colon := strings.Cut(line, ": ")
		field := map[string]*string{"": &ev.Comment, "id": &ev.ID, "event": &ev.Name, "data": &ev.Data}[name]
		if !colon || field == nil || *field != "" {
			return ev, fmt.Errorf("unknown or repeated field in line %q", line)
		}
		*field = value
	}
}

// ReadSSE returns the events and comments of a whole stream.
func ReadSSE(t testing.TB, stream string) []SSE {
	t.Helper()
	r := NewSSEReader(strings.NewReader(stream))
	var all []SSE
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
		all = append(all, ev)
	}
}

// SSENames returns the names of the events, without comments.
func SSENames(events []SSE) []string {
	var names []string
	for _, ev := range events {
		if ev.Name != "" {
			names = append(names, ev.Name)
		}
	}
	return names
}
