package subprocess

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// MaxLine bounds one message of a server, in bytes.
const MaxLine = 16 << 20

var errLineTooLong = fmt.Errorf("the server sent a line of more than %d bytes", MaxLine)

// messageReader reads the lines of a server's output that are messages. Servers also print
// banners and logs there, which would break the connection; these lines are dropped and
// counted. It is used by one goroutine, except for dropped.
type messageReader struct {
	source  io.Closer
	lines   *bufio.Reader
	rewrite func(line []byte) []byte // see Config
	pending []byte                   // of the current message
	dropped atomic.Int64
}

func newMessageReader(source io.ReadCloser, rewrite func([]byte) []byte) *messageReader {
	if rewrite == nil {
		rewrite = acceptJSON
	}
	return &messageReader{source: source, lines: bufio.NewReaderSize(source, 64<<10), rewrite: rewrite}
}

// Read implements io.Reader.
func (m *messageReader) Read(p []byte) (int, error) {
	for len(m.pending) == 0 {
		line, whole, err := m.readLine()
		if err != nil {
			return 0, err
		}
		if len(line) == 0 {
			continue
		}
		accept := acceptJSON
		if whole {
			accept = m.rewrite
		}
		message := accept(line)
		if message != nil {
			m.pending = append(message, '\n')
		} else {
			m.dropped.Add(1)
		}
	}
	n := copy(p, m.pending)
	m.pending = m.pending[n:]
	return n, nil
}

// Close implements io.Closer. It ends a Read that is blocked.
func (m *messageReader) Close() error { return m.source.Close() }

// readLine returns the next line without white space at its ends. It is not whole if the
// output ends in it: the server has written more, perhaps, when it was killed.
func (m *messageReader) readLine() (line []byte, whole bool, err error) {
	for {
		part, err := m.lines.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			return nil, false, errLineTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return bytes.TrimSpace(line), err == nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// acceptJSON returns the line if it is a JSON object or array, else nil.
func acceptJSON(line []byte) []byte {
	if line[0] != '{' && line[0] != '[' || strictjson.Unmarshal(line, new(json.RawMessage)) != nil {
		return nil
	}
	return line
}
