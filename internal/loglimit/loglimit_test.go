package loglimit

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A line of a key is logged once a minute, with the number of those that were dropped; other
// keys and lines without a key are independent, and loggers with attributes are not.
func TestHandler_PassesOneLineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		withoutTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}
		log := slog.New(NewHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
		full, other := With(t.Context(), "full"), With(t.Context(), "other")
		step := func(d time.Duration, ctx context.Context, name string) {
			<-time.After(d)
			log.ErrorContext(ctx, "line", "name", name)
		}
		step(0, full, "first")
		step(0, other, "other")
		step(0, full, "dropped")
		step(Interval-1, full, "dropped")
		log.With("a", 2).WarnContext(full, "line")
		step(0, t.Context(), "without a key")
		step(1, full, "second")
		step(0, full, "dropped")
		log.WithGroup("g").WarnContext(full, "line")
		step(2*Interval, full, "third")
		step(Interval, full, "fourth")
		want := []string{
			"msg=line name=first", "msg=line name=other", `msg=line name="without a key"`, "msg=line name=second suppressed=3",
			"msg=line name=third suppressed=2", "msg=line name=fourth",
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}
