package subprocess

import (
	"strings"
	"sync"
)

// maxStderr is how many bytes of a server's error output are kept.
const maxStderr = 64 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte // up to twice maxStderr
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-maxStderr):]...)
	if len(t.data) > 2*maxStderr {
		t.data = append(t.data[:0], t.data[len(t.data)-maxStderr:]...)
	}
	return len(p), nil
}

// String returns the last bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.data[max(0, len(t.data)-maxStderr):]), "\ufffd")
}
