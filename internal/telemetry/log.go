package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
)

// redacted stands where a value was kept out of the log.
const redacted = "<redacted>"

// newLogger returns a logger that writes through redact.
func newLogger(cfg Config) (*slog.Logger, error) {
	level, err := parseLevel(cfg.LogLevel)
	if err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: redact}
	switch {
	case cfg.Output == nil:
		return slog.New(slog.DiscardHandler), nil
	case onTerminal(cfg.Output):
		return slog.New(slog.NewTextHandler(cfg.Output, opts)), nil
	default:
		return slog.New(slog.NewJSONHandler(cfg.Output, opts)), nil
	}
}

func parseLevel(name string) (slog.Level, error) {
	switch name {
	case "debug":
		return slog.LevelDebug, nil
	case "info", "":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q: must be debug, info, warn or error", name)
}

// onTerminal takes every character device for a terminal. That counts
// /dev/null among them, where the format does not matter.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// redact is the last look at every attribute before it is written. It sees the
// members of groups one by one, and what a slog.LogValuer gave, not the valuer.
func redact(_ []string, a slog.Attr) slog.Attr {
	if private(a.Key) {
		return slog.String(a.Key, redacted)
	}
	if a.Value.Kind() == slog.KindAny && !plain(a.Value.Any()) {
		return slog.String(a.Key, fmt.Sprintf("<%T>", a.Value.Any()))
	}
	return a
}

// private reports whether the name is one that callers' text or a secret goes
// by in this program. Compared by whole name: "tokens", a count, is fine.
func private(key string) bool {
	switch strings.ToLower(key) {
	case "prompt", "content", "history", "inputs", "data", "body",
		"subtask_title", "subtasks", "segments", // lexical ones are cut out of the prompt
		"authorization", "cookie", "token", "secret", "password", "api_key", "private_key":
		return true
	}
	return false
}

// plain reports whether a value is written as it is: an error, the source
// position slog itself adds, and single strings, numbers and truths or lists
// of them, of whatever named type. Bytes are not a list of numbers here: they
// are a body or a key.
func plain(v any) bool {
	switch v.(type) {
	case nil, error, *slog.Source, slog.Level:
		return true
	}
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
		if t.Kind() == reflect.Uint8 {
			return false
		}
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}
