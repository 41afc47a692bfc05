package httptarget_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/dispatch/httptarget"
)

// The cause is logged and not returned to the caller. Neither contains a token.
func TestTarget_LogsCause(t *testing.T) {
	var log bytes.Buffer
	var token string
	target := newTarget(t, func(c *httptarget.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
		token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		_, _ = w.Write([]byte("<html>"))
	})
	execute(t, target, newCall(refusingURL+"/?key=hunter2"))
	execute(t, target, newCall(a.URL+"/?key=hunter2"))
	got := log.String()
	for _, want := range []string{
		`"agent":"quality_agent"`, `"task_id":"` + taskID + `"`, `"trace_id":"` + traceID + `"`, `"attempts":2`,
		`"code":"agent_unavailable"`, "connect: connection refused", `"code":"bad_result"`, "is not JSON",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %s in the log:\n%s", want, got)
		}
	}
	for _, secret := range []string{token, "hunter2", "Bearer"} {
		if secret == "" || strings.Contains(got, secret) {
			t.Errorf("got %q in the log:\n%s", secret, got)
		}
	}
}

// A success, or a task that the caller cancelled, is not logged.
func TestTarget_DoesNotLogSuccess(t *testing.T) {
	var log bytes.Buffer
	target := newTarget(t, func(c *httptarget.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	execute(t, target, newCall(newAgent(t, answering(http.StatusOK, successBody)).URL))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	target.Execute(ctx, newCall(refusingURL))
	if got := log.String(); got != "" {
		t.Errorf("got log %q, want nothing", got)
	}
}
