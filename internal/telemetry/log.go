package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"reflect"
	"strings"

	"github.com/caprouter/caprouter/internal/loglimit"
)

// redactedText replaces a secret value.
const redactedText = "<redacted>"

// newLogger returns a logger that sanitizes all attributes, and limits lines that repeat.
func newLogger(cfg Config) (*slog.Logger, error) {
	level, err := parseLevel(cfg.LogLevel)
	if err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: sanitizeAttr(cfg.Mask)}
	switch {
	case cfg.Output == nil:
		return slog.New(slog.DiscardHandler), nil
	case isTerminal(cfg.Output):
		return slog.New(loglimit.NewHandler(slog.NewTextHandler(cfg.Output, opts))), nil
	default:
		return slog.New(loglimit.NewHandler(slog.NewJSONHandler(cfg.Output, opts))), nil
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

// isTerminal reports whether w is a character device. That includes /dev/null,
// where the format does not matter.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// sanitizeAttr returns a slog.HandlerOptions.ReplaceAttr function that redacts
// secrets and masks texts that may quote a caller. slog calls it with each member
// of a group, and with the resolved value of a slog.LogValuer. If mask is nil, texts
// are not masked.
func sanitizeAttr(mask func(string) string) func([]string, slog.Attr) slog.Attr {
	if mask == nil {
		mask = func(text string) string { return text }
	}
	return func(_ []string, a slog.Attr) slog.Attr {
		if isSecretKey(a.Key) {
			return slog.String(a.Key, redactedText)
		}
		switch a.Value.Kind() {
		case slog.KindString:
			if mayQuoteCaller(a.Key) {
				return slog.String(a.Key, mask(a.Value.String()))
			}
		case slog.KindAny:
			v := a.Value.Any()
			if err, ok := v.(error); ok {
				return slog.String(a.Key, maskError(err, mask))
			}
			if !isPlainValue(v) {
				return slog.String(a.Key, fmt.Sprintf("<%T>", v))
			}
			if mayQuoteCaller(a.Key) {
				return maskAny(a, mask)
			}
		}
		return a
	}
}

// mayQuoteCaller reports whether the program logs error texts with the key, which may quote
// a caller, or a claim of a token that is not verified. Ids, labels and log messages come from the program itself.
func mayQuoteCaller(key string) bool {
	switch strings.ToLower(key) {
	case "error", "warning", "detail", "reason", "iss":
		return true
	}
	return false
}

// maskError returns the masked text of an error. The address that the router could not connect to
// or listen on stays: it is that of an agent or a server, which the same line names, or one that the
// operator has configured.
func maskError(err error, mask func(string) string) string {
	text, address := textOf(err), configuredAddress(err)
	if address == "" {
		return mask(text)
	}
	parts := strings.Split(text, address)
	for i := range parts {
		parts[i] = mask(parts[i])
	}
	return strings.Join(parts, address)
}

// configuredAddress returns the address of a failed connection or listener, or "".
func configuredAddress(err error) (address string) {
	defer func() {
		if p := recover(); p != nil { // of an error that is a nil pointer
			address = ""
		}
	}()
	if failed, ok := errors.AsType[*net.OpError](err); ok && (failed.Op == "dial" || failed.Op == "listen") && failed.Addr != nil {
		return failed.Addr.String()
	}
	return ""
}

// textOf returns the text of an error. If Error panics, for example because of a nil
// pointer, it returns the type instead.
func textOf(err error) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("<%T>", err)
		}
	}()
	return err.Error()
}

// maskAny masks a string or a list of strings, of any named type.
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

// isSecretKey reports whether the program uses the key for secrets or texts of
// callers. It compares whole keys: "tokens", a count, is none.
func isSecretKey(key string) bool {
	switch strings.ToLower(key) {
	case "prompt", "content", "history", "inputs", "data", "body",
		"subtask_title", "subtasks", "segments", // segments of the lexical classifier are parts of the prompt
		"authorization", "cookie", "token", "secret", "password", "api_key", "private_key":
		return true
	}
	return false
}

// isPlainValue reports whether a value is logged unchanged: an error, the source
// position that slog adds, a string, number or boolean, or a list of them, of any
// named type. Byte slices are excluded, because they are a body or a key.
func isPlainValue(v any) bool {
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
