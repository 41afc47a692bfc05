package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// Without --once the demo serves until it is stopped, and then removes all its files.
func TestDemo_ServesAfterRequests(t *testing.T) {
	leaked := goleak.IgnoreCurrent()
	defer goleak.VerifyNone(t, leaked)
	defer http.DefaultClient.CloseIdleConnections()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	reader, writer := io.Pipe()
	var log bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		d := demoRun{program: thisProgram(t), out: writer, log: &log, listen: "127.0.0.1:0", llm: config.Default().LLM, timeoutMS: 2000, lookupEnv: noEnvironment}
		err := d.run(ctx)
		ended <- err
		writer.CloseWithError(err)
	}()
	lines := bufio.NewScanner(reader)
	base := ""
	for base == "" && lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), "Serving on "); ok {
			base, _, _ = strings.Cut(after, " ")
		}
	}
	if base == "" {
		t.Fatalf("got the demo ended with %v", lines.Err())
	}
	lines.Scan()
	if got := lines.Text(); !strings.Contains(got, "caprouter route ") || !strings.HasSuffix(got, "--url "+base) {
		t.Errorf("got %q, want a command for %s", got, base)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }() // ends with the demo

	resp, err := http.Get(base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %s after the requests, want 200", resp.Status)
	}
	stop()
	if err := testkit.Receive(t, ended); err != nil {
		t.Errorf("stop: got %v, want no error", err)
	}
	if log.Len() > 0 {
		t.Errorf("got log %s, want none", &log)
	}
}

// With a key a model classifies. The demo does not depend on its replies: here it classifies every
// request as a code review, and no step fails.
func TestDemo_WithModel(t *testing.T) {
	model := fakellm.Start(t, fakellm.Config{})
	var out, log bytes.Buffer
	d := demoRun{program: thisProgram(t), out: &out, log: &log, listen: "127.0.0.1:0", once: true, llm: config.Default().LLM, timeoutMS: 2000}
	d.lookupEnv = func(name string) (string, bool) { return model.Key, name == "GEMINI_API_KEY" }
	d.llm.BaseURL = model.URL
	if err := d.run(t.Context()); err != nil {
		t.Fatalf("got %v\n%s", err, &out)
	}
	text := out.String()
	for _, want := range []string{
		"gemini gemini-3.5-flash-lite classifies the requests, ",
		"  model       gemini gemini-3.5-flash-lite, prompt ",
		"(Different from the lexical classifier: the status is ",
		"(Different from the lexical classifier: the router did not ask for a clarification.)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, model.Key) || log.Len() > 0 {
		t.Errorf("got log %q, and the key in the output: %v; want neither", &log, strings.Contains(text, model.Key))
	}
	if model.Calls() == 0 {
		t.Error("got no call of the model, want some")
	}
}

// thisProgram returns a path with which the test binary acts as caprouter: see TestMain.
func thisProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "caprouter")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDemo_FailsOnUnexpectedOutcome(t *testing.T) {
	tests := []struct {
		name, body, want string
		status           int
	}{
		{"no response", "", "which is not a caprouter answer", http.StatusInternalServerError},
		{"another outcome", `{"status":"failed"}`, "the status is failed, not completed", http.StatusOK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			d := demoRun{out: io.Discard, lookupEnv: noEnvironment}
			if err := d.runSteps(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}
