package fakenet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Memory is a network whose connections are made in memory. In a synctest bubble,
// time then passes only while both ends of every connection wait, so that a slow
// machine cannot let a deadline pass. Create it in the bubble.
type Memory struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
}

// NewMemory returns a network without listeners.
func NewMemory() *Memory { return &Memory{listeners: map[string]*memoryListener{}} }

// Listen returns a listener with an address of its own on 127.0.0.1.
func (m *Memory) Listen() net.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &memoryListener{
		addr:  &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: len(m.listeners) + 1},
		conns: make(chan net.Conn), closed: make(chan struct{}),
	}
	m.listeners[l.addr.String()] = l
	return l
}

// DialContext connects to a listener, which must accept the connection. An address
// without a listener refuses it.
func (m *Memory) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[addr]
	m.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	}
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type memoryListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *memoryListener) Addr() net.Addr { return l.addr }
