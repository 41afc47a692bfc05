package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/telemetry"
)

// reason is a value of a closed list, like the reasons of a model.
type reason string

// pointed is an error whose Error method panics if the pointer is nil.
type pointed struct{ text string }

func (p *pointed) Error() string { return p.text }

// logMasked logs a line with a Mask that replaces texts of callers.
func logMasked(t *testing.T, log func(l *slog.Logger)) map[string]any {
	t.Helper()
	var buf bytes.Buffer
	tel, err := telemetry.New(telemetry.Config{
		Output: &buf,
		Mask:   func(s string) string { return strings.ReplaceAll(s, marker, "[MASKED]") },
	})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	log(tel.Logger())
	var line map[string]any
	if err := json.Unmarshal(buf.Bytes(), &line); err != nil {
		t.Fatalf("the log is not one JSON object: %v: %s", err, buf.String())
	}
	delete(line, "time")
	delete(line, "level")
	delete(line, "msg")
	return line
}

// dialError is what an operation of the network returns if it fails at the address.
func dialError(op, address string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)), Err: err}
}

// The address that the router could not connect to is that of an agent or a server, and the operator
// has configured the one that it could not listen on. Others may be of callers.
func TestLogger_ShowsConfiguredAddress(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"dial", dialError("dial", "10.1.2.3:9101", errors.New("connection refused")), "dial tcp 10.1.2.3:9101: connection refused"},
		{"wrapped", fmt.Errorf("call for 10.9.9.9: %w", dialError("dial", "10.1.2.3:9101", errors.New("connection refused"))), "call for [IP]: dial tcp 10.1.2.3:9101: connection refused"},
		{"listen", fmt.Errorf("cannot listen on 10.1.2.3:9101: %w", dialError("listen", "10.1.2.3:9101", errors.New("address already in use"))), "cannot listen on 10.1.2.3:9101: listen tcp 10.1.2.3:9101: address already in use"},
		{"read", dialError("read", "10.1.2.3:9101", errors.New("connection reset")), "read tcp [IP]:9101: connection reset"},
		{"unknown address", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("lookup for 10.9.9.9")}, "dial tcp: lookup for [IP]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var buf bytes.Buffer
			tel, err := telemetry.New(telemetry.Config{Output: &buf, Mask: func(s string) string {
				return strings.NewReplacer("10.1.2.3", "[IP]", "10.9.9.9", "[IP]").Replace(s)
			}})
			if err != nil {
				t.Fatal(err)
			}
			tel.Logger().Error("m", "address", "http://10.1.2.3:9101/tasks", "error", tt.err)
			var line struct{ Error string }
			if err := json.Unmarshal(buf.Bytes(), &line); err != nil || line.Error != tt.want {
				t.Errorf("got %q (%v), want %q", line.Error, err, tt.want)
			}
		})
	}
}

func TestLogger_MasksErrors(t *testing.T) {
	quote := "invalid value: " + marker
	for _, tt := range []struct {
		name string
		key  string
		in   any
		want any
	}{
		{"error value", "error", errors.New(quote), "invalid value: [MASKED]"},
		{"error value under another name", "cause", errors.New(quote), "invalid value: [MASKED]"},
		{"wrapped error", "err", fmt.Errorf("decode: %w", errors.New(quote)), "decode: invalid value: [MASKED]"},
		{"joined errors", "error", errors.Join(errors.New("a"), errors.New(quote)), "a\ninvalid value: [MASKED]"},
		{"error text", "error", quote, "invalid value: [MASKED]"},
		{"warning", "warning", quote, "invalid value: [MASKED]"},
		{"issuer of a token", "iss", marker, "[MASKED]"},
		{"detail", "detail", quote, "invalid value: [MASKED]"},
		{"reason", "reason", quote, "invalid value: [MASKED]"},
		{"capitals", "Error", quote, "invalid value: [MASKED]"},
		{"text of a named type", "reason", reason(quote), "invalid value: [MASKED]"},
		{"list of texts", "warning", []string{"fine", quote}, []any{"fine", "invalid value: [MASKED]"}},
		{"list of texts of a named type", "reason", []reason{reason(quote)}, []any{"invalid value: [MASKED]"}},
		{"id", "request_id", "r-" + marker, "r-" + marker},
		{"number", "reason", 42, 42.0},
		{"list of numbers", "reason", []int{1, 2}, []any{1.0, 2.0}},
		{"nil", "error", nil, nil},
		{"error that is a nil pointer", "error", (*pointed)(nil), "<*telemetry_test.pointed>"},
		{"private name", "prompt", errors.New(quote), "<redacted>"},
		{"composite", "detail", struct{ Text string }{quote}, "<struct { Text string }>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for where, log := range map[string]func(l *slog.Logger){
				"line": func(l *slog.Logger) { l.Error("m", tt.key, tt.in) },
				"with": func(l *slog.Logger) { l.With(tt.key, tt.in).Error("m") },
			} {
				if diff := cmp.Diff(map[string]any{tt.key: tt.want}, logMasked(t, log)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", where, diff)
				}
			}
			inGroup := logMasked(t, func(l *slog.Logger) { l.WithGroup("g").Error("m", tt.key, tt.in) })
			if diff := cmp.Diff(map[string]any{"g": map[string]any{tt.key: tt.want}}, inGroup); diff != "" {
				t.Errorf("in a group (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a Mask only the other rules apply.
func TestLogger_WithoutMask(t *testing.T) {
	got := logLine(t, func(l *slog.Logger) {
		l.Error("m", "error", errors.New("no such file"), "reason", "llm_timeout", "detail", []string{"a", "b"})
	})
	want := map[string]any{"level": "ERROR", "msg": "m", "error": "no such file", "reason": "llm_timeout", "detail": []any{"a", "b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

// An error whose text cannot be read must not stop the process.
func TestLogger_SurvivesErrorThatPanics(t *testing.T) {
	got := logLine(t, func(l *slog.Logger) { l.Error("m", "error", (*pointed)(nil)) })
	if want := "<*telemetry_test.pointed>"; got["error"] != want {
		t.Errorf("error: got %v, want %v", got["error"], want)
	}
}
