package store

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// streamConns are the connections for the messages of each stream. A connection sends
// one message after the other, and a large one takes long: with a connection of its own,
// a stream does not wait for the messages of others, so that what one tenant stores does
// not delay the records of the requests of all.
type streamConns struct {
	mu       sync.Mutex
	byStream map[string]*streamConn
	closed   bool
}

// streamConn are the connections of one stream, opened when they are first used.
type streamConn struct {
	mu      sync.Mutex
	publish jetstream.JetStream
	read    *nats.Conn // separate, so that a long scan does not delay a write
}

// of returns the connections of a stream.
func (c *streamConns) of(stream string) (*streamConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("%w: the store is closed", ErrUnavailable)
	}
	if c.byStream == nil {
		c.byStream = map[string]*streamConn{}
	}
	if c.byStream[stream] == nil {
		c.byStream[stream] = &streamConn{}
	}
	return c.byStream[stream], nil
}

// publisher returns the connection for the writes to a stream.
func (e *engine) publisher(stream string) (jetstream.JetStream, error) {
	c, err := e.streams.of(stream)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.publish != nil {
		return c.publish, nil
	}
	conn, err := e.connect()
	if err == nil {
		c.publish, err = jetstream.New(conn)
	}
	return c.publish, err
}

// reader returns the connection for the reads of a stream.
func (e *engine) reader(stream string) (*nats.Conn, error) {
	c, err := e.streams.of(stream)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil {
		// For a page and the message that marks its end: the default is 512 KiB for each read.
		c.read, err = e.connect(nats.SyncQueueLen(pageMessages + 1))
	}
	return c.read, err
}

// connect opens one more connection.
func (e *engine) connect(more ...nats.Option) (*nats.Conn, error) {
	conn, err := nats.Connect(e.cfg.URL, slices.Concat(e.options, more)...)
	if err != nil {
		return nil, fmt.Errorf("%w: connect: %w", ErrUnavailable, withoutURL(err))
	}
	return conn, nil
}

// close closes all connections.
func (c *streamConns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, s := range c.byStream {
		s.close()
	}
}

func (c *streamConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.publish != nil {
		c.publish.Conn().Close()
	}
	if c.read != nil {
		c.read.Close()
	}
}

// redactURL returns the addresses of servers without their passwords.
func redactURL(raw string) string {
	addrs := strings.Split(raw, ",")
	for i, addr := range addrs {
		u, err := url.Parse(addr)
		if err != nil {
			return "the store's URL"
		}
		addrs[i] = u.Redacted()
	}
	return strings.Join(addrs, ",")
}

// withoutURL removes the URL, which may contain a password, from an error of
// url.Parse.
func withoutURL(err error) error {
	if parsing, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("invalid URL: %w", parsing.Err)
	}
	return err
}
