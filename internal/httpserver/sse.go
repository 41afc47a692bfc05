package httpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// EventError is the name of the event that reports an error after the response
// has begun.
const EventError = "error"

// maxQueued is the number of events that are queued for a slow reader before
// backpressure stops their source.
const maxQueued = 64

// Event is one server-sent event.
type Event struct {
	ID        uint64 // 0 = none: a reader cannot resume after this event
	Name      string
	Data      any  // encoded as one line of JSON
	Droppable bool // drop the event instead of waiting for a slow reader
}

// EmitFunc queues an event. While the queue is full it blocks. Its error means
// that the stream has ended, and must end the source.
type EmitFunc func(ev *Event) error

// EventStream is a response of server-sent events.
type EventStream struct {
	// Source emits the events and returns after the last one, or when ctx ends.
	Source func(ctx context.Context, emit EmitFunc) error
	// SetHeaders, if set, sets headers that depend on the first event.
	SetHeaders func(c *Context, first *Event)
	// EndOnShutdown ends the stream when the shutdown begins. The reader can
	// resume it elsewhere.
	EndOnShutdown bool
	// EndWithToken ends the stream with an error when the token of the caller expires
	// or its key is revoked.
	EndWithToken bool
}

// tokenCheckInterval is the interval of checks of the token of a stream without
// events. The token is also checked before each event.
const tokenCheckInterval = time.Second

// errReaderDisconnected is the cause of a source's context after the reader
// disconnected.
var errReaderDisconnected = errors.New("the reader of the events disconnected")

// StreamEvents responds with the events of the stream, and with a comment in each
// heartbeat interval, until the source returns. If the source fails before the
// first event, StreamEvents returns the error; later the error becomes the last
// event.
//
// The source runs in a goroutine of its own, because it blocks: while nothing
// happens, and by backpressure if the reader is slow. A reader that does not read
// for writeTimeout counts as disconnected. Events that the source emits after the
// server cancelled its context, to report its progress, are still written.
func (c *Context) StreamEvents(stream EventStream) error {
	var stop <-chan struct{}
	if stream.EndOnShutdown {
		stop = c.server.shutdown.started
	}
	queue := make(chan *Event, maxQueued)
	reading, endReading := context.WithCancelCause(context.WithoutCancel(c.Request.Context()))
	defer endReading(nil)
	g := run.New(c.Request.Context())
	var failure error // may be read once queue is closed
	g.Go("emit events", func(ctx context.Context) error {
		defer close(queue)
		failure = stream.Source(ctx, func(ev *Event) error { return enqueueEvent(reading, queue, ev) })
		return nil
	})
	w := &eventWriter{c: c, setHeaders: stream.SetHeaders, endWithToken: stream.EndWithToken}
	cause := w.relayEvents(queue, stop)
	g.Stop(cause)
	endReading(cause)
	for range queue { // until the source has returned
	}
	if err := g.Wait(); err != nil { // a panic of the source
		failure, cause = err, nil
	}
	switch {
	case errors.Is(cause, errReaderDisconnected), errors.Is(cause, errShutdown):
		return nil // this side ended the source
	case errors.Is(failure, errShutdown) && w.hasBegun():
		return nil
	case cause != nil:
		failure = cause
	case failure == nil && !w.hasBegun():
		c.WriteHeader(http.StatusNoContent) // so that a browser does not reconnect
	}
	if failure == nil || !w.hasBegun() {
		return failure
	}
	return w.writeError(failure)
}

// enqueueEvent queues an event and blocks while the queue is full and the reader is
// connected. A droppable event is dropped once the queue is half full: it must
// not block the source, nor take the rest of the queue from other events.
func enqueueEvent(reading context.Context, queue chan<- *Event, ev *Event) error {
	if reading.Err() != nil {
		return context.Cause(reading)
	}
	if ev.Droppable && len(queue) >= cap(queue)/2 {
		return nil
	}
	select {
	case queue <- ev:
		return nil
	case <-reading.Done():
		return context.Cause(reading)
	}
}

// eventWriter writes a response event by event. One goroutine uses it.
type eventWriter struct {
	c          *Context
	setHeaders func(c *Context, first *Event)

	endWithToken bool
}

// checkToken returns an error if the stream must end because of its token.
func (w *eventWriter) checkToken() error {
	if !w.endWithToken {
		return nil
	}
	return w.c.server.access.recheckCaller(w.c)
}

func (w *eventWriter) hasBegun() bool { return w.c.status != 0 }

// relayEvents writes the events of the queue until it is closed. If it ends earlier, it
// returns the reason.
func (w *eventWriter) relayEvents(queue <-chan *Event, stop <-chan struct{}) error {
	heartbeat := time.NewTicker(w.c.server.cfg.Heartbeat)
	defer heartbeat.Stop()
	tokenCheck := time.NewTicker(tokenCheckInterval)
	defer tokenCheck.Stop()
	if !w.endWithToken {
		tokenCheck.Stop()
	}
	for {
		var err error
		select {
		case ev, more := <-queue:
			if !more {
				return nil
			}
			if err := w.checkToken(); err != nil {
				return err
			}
			if !w.hasBegun() && w.setHeaders != nil {
				w.setHeaders(w.c, ev)
			}
			err = w.writeEvent(ev)
		case <-tokenCheck.C:
			err = w.checkToken()
		case <-heartbeat.C:
			err = w.write([]byte(": the request is in progress\n\n"))
		case <-stop:
			_ = w.write([]byte(": the server is stopping; connect again\n\n"))
			return errShutdown
		}
		if err != nil {
			return err
		}
	}
}

// writeError ends the stream with an error event.
func (w *eventWriter) writeError(err error) error {
	e, encoded := w.c.server.encodeError(w.c, err)
	w.c.outcome, w.c.failed = string(e.Code), true
	if err := w.writeEvent(&Event{Name: EventError, Data: encoded.Body}); !errors.Is(err, errReaderDisconnected) {
		return err
	}
	return nil
}

// writeEvent encodes the event before it writes, so that no event is incomplete.
func (w *eventWriter) writeEvent(ev *Event) error {
	buf := w.c.server.buffers.get()
	defer w.c.server.buffers.put(buf)
	if err := encodeEvent(buf, ev); err != nil {
		return err
	}
	return w.write(buf.Bytes())
}

// encodeEvent appends one event. Its data is one line, because JSON escapes line
// breaks in strings and the encoder writes none elsewhere.
func encodeEvent(buf *bytes.Buffer, ev *Event) error {
	if ev.ID != 0 {
		_, _ = buf.WriteString("id: ")
		_, _ = buf.Write(strconv.AppendUint(buf.AvailableBuffer(), ev.ID, 10))
		_ = buf.WriteByte('\n')
	}
	_, _ = buf.WriteString("event: ")
	_, _ = buf.WriteString(ev.Name)
	_, _ = buf.WriteString("\ndata: ")
	if err := strictjson.MarshalWrite(buf, ev.Data); err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	_, _ = buf.WriteString("\n\n")
	return nil
}

// write sends p at once. Each write has its own writeTimeout.
func (w *eventWriter) write(p []byte) error {
	control := http.NewResponseController(w.c.writer)
	if !w.hasBegun() {
		w.c.SetHeader("Content-Type", MediaTypeEvents)
		w.c.SetHeader("X-Accel-Buffering", "no") // for proxies that buffer responses
		w.c.WriteHeader(http.StatusOK)
	}
	// Writers without a connection, in tests, have no deadline to set.
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := w.c.Write(p); err != nil {
		return fmt.Errorf("%w: %w", errReaderDisconnected, err)
	}
	if err := control.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errReaderDisconnected, err)
	}
	return nil
}
