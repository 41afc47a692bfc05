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

// newLogger returns a logger that writes through lookOver.
func newLogger(cfg Config) (*slog.Logger, error) {
	level, err := parseLevel(cfg.LogLevel)
	if err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: lookOver(cfg.Mask)}
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

// lookOver returns the last look at every attribute before it is written. It
// sees the members of groups one by one, and what a slog.LogValuer gave, not the
// valuer. mask is for texts that may quote a caller; nil leaves them.
func lookOver(mask func(string) string) func([]string, slog.Attr) slog.Attr {
	if mask == nil {
		mask = func(text string) string { return text }
	}
	return func(_ []string, a slog.Attr) slog.Attr {
		if private(a.Key) {
			return slog.String(a.Key, redacted)
		}
		switch a.Value.Kind() {
		case slog.KindString:
			if quotes(a.Key) {
				return slog.String(a.Key, mask(a.Value.String()))
			}
		case slog.KindAny:
			v := a.Value.Any()
			if err, ok := v.(error); ok {
				return slog.String(a.Key, mask(textOf(err)))
			}
			if !plain(v) {
				return slog.String(a.Key, fmt.Sprintf("<%T>", v))
			}
			if quotes(a.Key) {
				return maskAny(a, mask)
			}
		}
		return a
	}
}

// quotes reports whether the name is one under which this program logs words
// about what went wrong. Those may repeat what a caller sent; ids, labels and
// the message of the line itself are our own.
func quotes(key string) bool {
	switch strings.ToLower(key) {
	case "error", "warning", "detail", "reason":
		return true
	}
	return false
}

// textOf is the text of an error, also of a nil pointer in one: the log does not
// end a program.
func textOf(err error) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("<%T>", err)
		}
	}()
	return err.Error()
}

// maskAny masks a text, or those of a list, of whatever named type.
func maskAny(a slog.Attr, mask func(string) string) slog.Attr {
	switch v := reflect.ValueOf(a.Value.Any()); {
	case v.Kind() == reflect.String:
		return slog.String(a.Key, mask(v.String()))
	case (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) && v.Type().Elem().Kind() == reflect.String:
		masked := make([]string, v.Len())
		for i := range masked {
			masked[i] = mask(v.Index(i).String())
		}
		return slog.Any(a.Key, masked)
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
