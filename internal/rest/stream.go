package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// typeEvents is the media type of an event stream (HTML §9.2).
const typeEvents = "text/event-stream"

// eventError names the event that stands for an error once the status is out.
const eventError = "error"

// maxQueued is how many events wait for a reader before their source does.
const maxQueued = 64

// emitter takes an event; sequence 0 stands for none. Its error ends the source.
type emitter func(seq uint64, ev *contract.Event) error

// queued is an event on its way from the source to the reader.
type queued struct {
	seq uint64
	ev  *contract.Event
}

// seqEnd is the id of a final event that has none of its own, because the events
// of its request are gone. No event follows it: a browser that connects again
// with it is told so.
const seqEnd = math.MaxUint64

// errReaderLeft is why a source's context ends when nobody reads any more.
var errReaderLeft = errors.New("the reader of the events left")

// pump answers with the events that source emits, and with a comment now and
// then, until source returns. An error before the first event is an ordinary
// error; later it is the last event. When stop is closed the stream ends.
//
// The source has a goroutine of its own, because it blocks: in the core while
// nothing happens, and here when the reader is slow. A reader who takes nothing
// for writeTimeout has left. What the source still says after its own context
// ended, how far it got before the server stops, is written as long as somebody
// reads.
func (s *Server) pump(x *exchange, stop <-chan struct{}, source func(ctx context.Context, emit emitter) error) error {
	queue := make(chan queued, maxQueued)
	reading, leave := context.WithCancelCause(context.WithoutCancel(x.req.Context()))
	defer leave(nil)
	g := run.New(x.req.Context())
	var failure error // read when queue is closed
	g.Go("emit events", func(ctx context.Context) error {
		defer close(queue)
		failure = source(ctx, func(seq uint64, ev *contract.Event) error { return enqueue(reading, queue, seq, ev) })
		return nil
	})
	stream := &eventStream{x: x}
	cause := s.relay(stream, queue, stop)
	g.Stop(cause)
	leave(cause)
	for range queue { // until the source has returned
	}
	if err := g.Wait(); err != nil { // it panicked
		failure, cause = err, nil
	}
	switch {
	case errors.Is(cause, errReaderLeft), errors.Is(cause, errStopping):
		return nil // the source was told to end
	case errors.Is(failure, errStopping) && stream.begun():
		return nil // it ended because the server does
	case cause != nil:
		failure = cause
	case failure == nil && !stream.begun():
		x.WriteHeader(http.StatusNoContent) // tells a browser not to connect again
	}
	if failure == nil || !stream.begun() {
		return failure
	}
	return s.failStream(stream, failure)
}

// enqueue waits for a place in the queue, as long as somebody is reading.
// Progress that nobody can resume at is not worth holding up the work for, nor
// does it take the last places of events that are.
func enqueue(reading context.Context, queue chan<- queued, seq uint64, ev *contract.Event) error {
	if reading.Err() != nil {
		return context.Cause(reading)
	}
	if seq == 0 && ev.Type == contract.EventTaskProgress && len(queue) >= cap(queue)/2 {
		return nil
	}
	select {
	case queue <- queued{seq: seq, ev: ev}:
		return nil
	case <-reading.Done():
		return context.Cause(reading)
	}
}

// relay writes what comes out of the queue until it is closed. It returns why it
// stopped before that.
func (s *Server) relay(stream *eventStream, queue <-chan queued, stop <-chan struct{}) error {
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case item, more := <-queue:
			if !more {
				return nil
			}
			stream.announce(item.ev)
			err = s.sendEvent(stream, item.seq, string(item.ev.Type), item.ev)
		case <-beat.C:
			err = stream.write([]byte(": the request is worked on\n\n"))
		case <-stop:
			_ = stream.write([]byte(": the server is stopping; connect again\n\n"))
			return errStopping
		}
		if err != nil {
			return err
		}
	}
}

// failStream ends a stream with the problem that err is.
func (s *Server) failStream(stream *eventStream, err error) error {
	x := stream.x
	e := s.public(x.req.Context(), x, err)
	x.outcome, x.failed = string(e.Code), true
	if err := s.sendEvent(stream, 0, eventError, newProblem(e, x.id)); !errors.Is(err, errReaderLeft) {
		return err
	}
	return nil
}

// sendEvent encodes first and writes after: nothing is half sent.
func (s *Server) sendEvent(stream *eventStream, seq uint64, name string, v any) error {
	buf := s.buffers.get()
	defer s.buffers.put(buf)
	if err := encodeEvent(buf, seq, name, v); err != nil {
		return err
	}
	return stream.write(buf.Bytes())
}

// encodeEvent writes one event. JSON holds no line break outside of strings, and
// inside of them they are escaped, so the data is one line.
func encodeEvent(buf *bytes.Buffer, seq uint64, name string, v any) error {
	if seq != 0 {
		_, _ = buf.WriteString("id: ")
		_, _ = buf.Write(strconv.AppendUint(buf.AvailableBuffer(), seq, 10))
		_ = buf.WriteByte('\n')
	}
	_, _ = buf.WriteString("event: ")
	_, _ = buf.WriteString(name)
	_, _ = buf.WriteString("\ndata: ")
	if err := strictjson.MarshalWrite(buf, v); err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	_, _ = buf.WriteString("\n\n")
	return nil
}

// eventStream is an answer that is written event by event. One goroutine uses it.
type eventStream struct{ x *exchange }

func (e *eventStream) begun() bool { return e.x.status != 0 }

// announce puts into the headers what the first event knows of the answer.
func (e *eventStream) announce(ev *contract.Event) {
	switch {
	case e.begun():
	case ev.Response != nil:
		setAnswer(e.x, ev.Response)
	default:
		setDecision(e.x, ev.Decision)
	}
}

// write sends p at once. Every write has writeTimeout to get through.
func (e *eventStream) write(p []byte) error {
	control := http.NewResponseController(e.x.ResponseWriter)
	if !e.begun() {
		e.x.set("Content-Type", typeEvents)
		e.x.set("Cache-Control", "no-store")
		e.x.set("X-Accel-Buffering", "no") // proxies that collect what they pass on
		e.x.WriteHeader(http.StatusOK)
	}
	// Writers without a connection, in tests, have no deadline to set.
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := e.x.Write(p); err != nil {
		return fmt.Errorf("%w: %w", errReaderLeft, err)
	}
	if err := control.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errReaderLeft, err)
	}
	return nil
}
