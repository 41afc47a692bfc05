package httptarget

import (
	"bytes"
	"sync"
)

// maxPooled keeps one large reply from holding on to its memory.
const maxPooled = 256 << 10

// buffers are reused by replies.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *bytes.Buffer {
	if buf, ok := b.pool.Get().(*bytes.Buffer); ok {
		return buf
	}
	return new(bytes.Buffer)
}

func (b *buffers) put(buf *bytes.Buffer) {
	if buf.Cap() <= maxPooled {
		buf.Reset()
		b.pool.Put(buf)
	}
}
