// Package loglimit limits log lines that repeat, for example one for each request that a full
// disk rejects. A caller marks the context of a line:
//
//	log.ErrorContext(loglimit.With(ctx, "store is full"), "cannot write", "error", err)
//
// A [Handler] passes on one line a minute for each key. The attribute suppressed of a line is
// the number of lines that were dropped since the one before. Without a Handler, all lines are
// logged.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Interval is the least time between two lines with the same key.
const Interval = time.Minute

// contextKey is the key of the context value, which is the key of the lines.
type contextKey struct{}

// With returns a context for log lines that are limited together. The keys are few, because
// each uses memory as long as the process runs.
func With(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, contextKey{}, key)
}

// Handler is a slog.Handler that limits the lines whose context is from With. Its methods may
// be called from any goroutine.
type Handler struct {
	slog.Handler
	lines *lines
}

// NewHandler returns a Handler that passes lines on to next.
func NewHandler(next slog.Handler) *Handler {
	return &Handler{next, &lines{byKey: map[string]*line{}}}
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if key, ok := ctx.Value(contextKey{}).(string); ok {
		suppressed, due := h.lines.count(key, r.Time)
		if !due {
			return nil
		}
		if suppressed > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("suppressed", suppressed))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.lines}
}

// lines are the lines of each key.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

type line struct {
	last       time.Time // that was passed on
	suppressed int       // since then
}

// count reports whether a line is due, and how many were suppressed before it.
func (l *lines) count(key string, at time.Time) (suppressed int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byKey[key]
	if known == nil {
		l.byKey[key] = &line{last: at}
		return 0, true
	}
	if at.Sub(known.last) < Interval {
		known.suppressed++
		return 0, false
	}
	suppressed = known.suppressed
	known.last, known.suppressed = at, 0
	return suppressed, true
}
