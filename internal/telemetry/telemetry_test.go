package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/telemetry"
)

const marker = "the caller's own words"

func itoa(n int) string { return strconv.Itoa(n) }

// logLine returns the members of the line that log writes, without the time.
func logLine(t *testing.T, log func(l *slog.Logger)) map[string]any {
	t.Helper()
	var buf bytes.Buffer
	tel, err := telemetry.New(telemetry.Config{LogLevel: "debug", Output: &buf})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	log(tel.Logger())
	var line map[string]any
	if err := json.Unmarshal(buf.Bytes(), &line); err != nil {
		t.Fatalf("the log is not one JSON object: %v: %s", err, buf.String())
	}
	if strings.Contains(buf.String(), marker) {
		t.Errorf("the log contains %q: %s", marker, buf.String())
	}
	delete(line, "time")
	return line
}

// valuer implements slog.LogValuer.
type valuer struct{ id, prompt string }

func (v valuer) LogValue() slog.Value { return slog.StringValue(v.id) }

// caller is a struct that could be logged by accident.
type caller struct{ Name, Prompt string }

func TestLogger_WritesPlainValues(t *testing.T) {
	tests := []struct {
		name  string
		value any
		want  any
	}{
		{"string", "r-1", "r-1"},
		{"number", 42, 42.0},
		{"named string", contract.StatusCompleted, "completed"},
		{"duration", 1500 * time.Millisecond, 1.5e9},
		{"list of strings", []string{"quality_agent", "billing_agent"}, []any{"quality_agent", "billing_agent"}},
		{"list of named strings", []contract.Status{contract.StatusFailed}, []any{"failed"}},
		{"list of numbers", []float64{0.8, 0.5}, []any{0.8, 0.5}},
		{"error", fmt.Errorf("load: %w", errors.New("no such file")), "load: no such file"},
		{"nil", nil, nil},
		{"valuer", valuer{"r-1", marker}, "r-1"},
		{"group", slog.GroupValue(slog.String("intent", "code_review"), slog.String("prompt", marker)), map[string]any{"intent": "code_review", "prompt": "<redacted>"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := logLine(t, func(l *slog.Logger) { l.Info("routed", "value", tt.value) })
			want := map[string]any{"level": "INFO", "msg": "routed", "value": tt.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogger_ShowsOnlyTypeOfComposites(t *testing.T) {
	req := contract.Request{Content: contract.Content{Prompt: marker}}
	tests := []struct {
		name  string
		value any
		want  string
	}{
		{"struct", req, "<contract.Request>"},
		{"pointer", &req, "<*contract.Request>"},
		{"list of structs", []contract.Turn{{Content: marker}}, "<[]contract.Turn>"},
		{"map", map[string]string{"text": marker}, "<map[string]string>"},
		{"list of any", []any{marker}, "<[]interface {}>"},
		{"list of lists", [][]string{{marker}}, "<[][]string>"},
		{"bytes", []byte(marker), "<[]uint8>"},
		{"raw JSON", json.RawMessage(`"` + marker + `"`), "<json.RawMessage>"},
		{"own type", caller{"a", marker}, "<telemetry_test.caller>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := logLine(t, func(l *slog.Logger) { l.Info("routed", "value", tt.value) })
			if got["value"] != tt.want {
				t.Errorf("value: got %v, want %s", got["value"], tt.want)
			}
		})
	}
}

func TestLogger_RedactsSecretKeys(t *testing.T) {
	for _, key := range []string{
		"prompt", "Prompt", "PROMPT", "content", "history", "inputs", "data", "body", "subtask_title", "subtasks", "segments",
		"authorization", "Authorization", "cookie", "token", "secret", "password", "api_key", "private_key",
	} {
		t.Run(key, func(t *testing.T) {
			for _, got := range []map[string]any{
				logLine(t, func(l *slog.Logger) { l.Info("m", key, marker) }),
				logLine(t, func(l *slog.Logger) { l.With(key, marker).Info("m") }),
				logLine(t, func(l *slog.Logger) { l.LogAttrs(t.Context(), slog.LevelInfo, "m", slog.String(key, marker)) }),
			} {
				if got[key] != "<redacted>" {
					t.Errorf("%s: got %v, want <redacted>", key, got[key])
				}
			}
			inGroup := logLine(t, func(l *slog.Logger) { l.WithGroup("clf").Info("m", key, marker) })
			if diff := cmp.Diff(map[string]any{key: "<redacted>"}, inGroup["clf"]); diff != "" {
				t.Errorf("in a group (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogger_KeepsSimilarKeys(t *testing.T) {
	for _, key := range []string{"tokens", "prompt_bytes", "body_bytes", "intent", "kid", "msg", "key"} {
		got := logLine(t, func(l *slog.Logger) { l.Info("m", slog.Group("g", key, "v")) })
		if diff := cmp.Diff(map[string]any{key: "v"}, got["g"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

func TestLogger_Levels(t *testing.T) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	for name, first := range map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			tel, err := telemetry.New(telemetry.Config{LogLevel: name, Output: &buf})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			for _, level := range levels {
				buf.Reset()
				tel.Logger().Log(t.Context(), level, "m")
				if got, want := buf.Len() > 0, level >= first; got != want {
					t.Errorf("level %s written: got %t, want %t", level, got, want)
				}
			}
		})
	}
}

func TestNew_RejectsUnknownLevel(t *testing.T) {
	for _, name := range []string{"INFO", "verbose", "info+1", " info"} {
		_, err := telemetry.New(telemetry.Config{LogLevel: name})
		want := fmt.Sprintf("log level %q: must be debug, info, warn or error", name)
		if err == nil || err.Error() != want {
			t.Errorf("level %q: got %v, want %s", name, err, want)
		}
	}
}

func TestLogger_WithoutOutput(t *testing.T) {
	l := newTelemetry(t).Logger()
	if l.Enabled(t.Context(), slog.LevelError) {
		t.Error("a logger without an output is enabled")
	}
	l.Error("goes nowhere")
}

func TestLogger_FileIsJSON(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	tel, err := telemetry.New(telemetry.Config{Output: f})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	tel.Logger().Info("started")
	line, err := os.ReadFile(f.Name())
	if err != nil || !json.Valid(line) {
		t.Errorf("got %q, %v; want a line of JSON", line, err)
	}
}

func TestHandler_ServesRuntimeMetrics(t *testing.T) {
	tel := newTelemetry(t)
	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := rec.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=") {
		t.Errorf("Content-Type: got %q, want the Prometheus text format", got)
	}
	for _, want := range []string{"go_goroutines ", "process_open_fds ", "go_build_info{"} {
		if !strings.Contains(rec.Body.String(), "\n"+want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	for _, unwanted := range []string{"otel_scope", "target_info"} {
		if strings.Contains(rec.Body.String(), unwanted) {
			t.Errorf("the metrics have %s, want none", unwanted)
		}
	}
}

// Two instances in one process, as in tests and the demo, are independent.
func TestNew_RegistriesAreIndependent(t *testing.T) {
	a, b := newTelemetry(t), newTelemetry(t)
	a.Metrics().RecordFallback("B")
	const series = `caprouter_fallback_total{policy="B"}`
	if got := scrapeMetrics(t, b)[series]; got != "0" {
		t.Errorf("%s of the other instance: got %s, want 0", series, got)
	}
}

func BenchmarkLog(b *testing.B) {
	tel, err := telemetry.New(telemetry.Config{Output: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	chosen := []string{"quality_agent"}
	b.ReportAllocs()
	for b.Loop() {
		tel.Logger().LogAttrs(b.Context(), slog.LevelInfo, "routed",
			slog.String("request_id", "0198c0de-0000-7000-8000-000000000000"),
			slog.String("intent", "code_review"), slog.Float64("confidence", 0.93),
			slog.Any("chosen", chosen), slog.Duration("took", time.Millisecond))
	}
}
