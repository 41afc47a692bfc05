package httptarget_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
)

// masked is the MaskText of a Call.
func masked(c *dispatch.Call) {
	c.MaskText = func(text string) string { return strings.ReplaceAll(text, "ana@example.com", "[EMAIL_1]") }
}

// The log contains the address and the beginning of a reply that is no Result.
func TestTarget_ReportsReplyToOperators(t *testing.T) {
	long := strings.Repeat("é", 300)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("no capacity"))
	_ = z.Close()
	for _, tc := range []struct {
		name, body, want string
		status           int
		header           http.Header
	}{
		{"refused", `{"title":"who is ana@example.com?"}`, `{"title":"who is [EMAIL_1]?"}`, 400, nil},
		{"no Result", `{"statu":"success"}`, `{"statu":"success"}`, 200, nil},
		{"long", long, strings.Repeat("é", 200) + "…", 404, nil},
		{"very long reply", strings.Repeat("x", 8<<20), strings.Repeat("x", 200) + "…", 503, nil},
		{"newlines and control characters", "a\n\x1b[31mb\u202e\xffc", "a [31mb c", 403, nil},
		{"gzip", zipped.String(), "no capacity", 429, http.Header{"Content-Encoding": {"gzip"}}},
		{"no body", "", "", 500, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			target := newTarget(t, func(c *httptarget.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
				for name := range tc.header {
					w.Header().Set(name, tc.header.Get(name))
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			address := strings.Replace(a.URL, "http://", "http://user:hunter2@", 1) + "/tasks?key=hunter2"
			got := execute(t, target, newCall(address, masked))
			if got.Err == nil || got.Err.Address != a.URL+"/tasks" || got.Err.Reply != tc.want {
				t.Errorf("got %+v, want the address %s/tasks and the reply %q", got.Err, a.URL, tc.want)
			}
			if !strings.Contains(log.String(), "address="+a.URL+"/tasks") || strings.Contains(log.String(), "hunter2") {
				t.Errorf("got log %s, want the address without credentials", log.String())
			}
			if again := execute(t, target, newCall(a.URL)); again.Err.Reply != "" {
				t.Errorf("got reply %q without masking, want none", again.Err.Reply)
			}
		})
	}
}

// If an agent returns its request, the token in it is not logged.
func TestTarget_RemovesTokensFromReply(t *testing.T) {
	a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, "got ", r.Header.Get("Authorization"))
	})
	if got := execute(t, newTarget(t), newCall(a.URL, masked)); got.Err.Reply != "got Bearer [TOKEN]" {
		t.Errorf("got reply %q, want no token", got.Err.Reply)
	}
}

// An incomplete reply does not delay the standby.
func TestTarget_DoesNotWaitForReplyOfRefusal(t *testing.T) {
	a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("wait"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if got := execute(t, newTarget(t), newCall(a.URL, masked)); got.Err.Reply != "wait" {
		t.Errorf("got reply %q, want the bytes that arrived", got.Err.Reply)
	}
}
