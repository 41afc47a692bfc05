package httpserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
)

// TestServe_DrainEndsReaders: a stream with EndOnShutdown ends at the beginning of the shutdown,
// other streams end with their source.
func TestServe_DrainEndsReaders(t *testing.T) {
	f := newWaitingAPI()
	release := make(chan struct{})
	wait := f.stream
	f.stream = func(c *Context) EventStream {
		if c.Request.URL.Path == "/events" {
			return wait(c)
		}
		return EventStream{Source: func(_ context.Context, emit EmitFunc) error {
			if err := emit(&Event{Name: "first", Data: 1}); err != nil {
				return err
			}
			<-release
			return emit(&Event{Name: "last", Data: 2})
		}}
	}
	srv := startServer(t, Config{DrainTimeout: forever}, f.fakeAPI)
	reader, _ := srv.openEvents(t.Context(), t, http.MethodGet, "/events")
	running, _ := srv.openEvents(t.Context(), t, http.MethodPost, "/stream")
	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()

	nextEvent(t, reader, "first")
	if ev, err := reader.Next(); err != nil || ev.Comment != "the server is stopping; connect again" {
		t.Errorf("got %+v (%v), want a comment", ev, err)
	}
	if _, err := reader.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end of the stream", err)
	}
	if cause := testkit.Receive(t, f.causes); !errors.Is(cause, errShutdown) {
		t.Errorf("context: got %v, want %v", cause, errShutdown)
	}
	close(release)
	nextEvent(t, running, "first")
	nextEvent(t, running, "last")
	if err := testkit.Receive(t, stopped); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestServe_DrainCancelsStreams(t *testing.T) {
	f := newWaitingAPI()
	srv := startServer(t, Config{DrainTimeout: time.Millisecond, DrainGrace: forever}, f.fakeAPI)
	r, _ := srv.openEvents(t.Context(), t, http.MethodPost, "/stream")
	nextEvent(t, r, "first")
	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()
	if ev := nextEvent(t, r, EventError); !strings.Contains(ev.Data, `"error":"overloaded"`) {
		t.Errorf("got %+v, want the code overloaded", ev)
	}
	if err := testkit.Receive(t, stopped); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestServe_DrainWritesLastEvents: each reader gets the events that the source emits after its
// context was cancelled.
func TestServe_DrainWritesLastEvents(t *testing.T) {
	f := source(func(ctx context.Context, emit EmitFunc) error {
		if err := emit(&Event{Name: "first", Data: 1}); err != nil {
			return err
		}
		<-ctx.Done()
		return errors.Join(emit(&Event{Name: "progress", Data: 2}), emit(&Event{Name: "final", Data: 3}))
	})
	srv := startServer(t, Config{DrainTimeout: time.Millisecond, DrainGrace: forever}, f)
	readers := make([]*testkit.SSEReader, 30)
	for i := range readers {
		readers[i], _ = srv.openEvents(t.Context(), t, http.MethodPost, "/stream")
		nextEvent(t, readers[i], "first")
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()
	for _, r := range readers {
		nextEvent(t, r, "progress")
		nextEvent(t, r, "final")
	}
	if err := testkit.Receive(t, stopped); err != nil {
		t.Errorf("Serve: %v", err)
	}
}
