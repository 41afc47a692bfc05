package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error is an error in a document. Its text is for the sender of the document.
type Error struct {
	Pointer string // RFC 6901; "" is the whole document
	Detail  string // "must be a string, got a number"
	Syntax  bool   // the document is not JSON
	Offset  int64  // in bytes
}

// Locate returns the line and column of a syntax error in the document, both from 1, and
// the detail without them.
func (e *Error) Locate(data []byte) (line, column int, detail string) {
	line, column = lineColumn(data, e.Offset)
	return line, column, strings.TrimSuffix(e.Detail, positionSuffix(line, column))
}

func positionSuffix(line, column int) string {
	return fmt.Sprintf(" at line %d, column %d", line, column)
}

// Error returns the pointer and the detail.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Detail
	}
	return e.Pointer + ": " + e.Detail
}

// translateError converts an error of the library.
func translateError(err error, data []byte) *Error {
	if e := detectEncoding(data); e != nil {
		return e
	}
	var (
		syntactic *jsontext.SyntacticError
		semantic  *json.SemanticError
	)
	switch {
	case errors.As(err, &semantic):
		return translateSemanticError(semantic)
	case errors.As(err, &syntactic):
		return translateSyntaxError(syntactic, data)
	}
	return &Error{Detail: err.Error(), Syntax: true}
}

// detectEncoding detects encodings that an editor does not show.
func detectEncoding(data []byte) *Error {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return &Error{Detail: "is not JSON: it starts with a byte order mark; send plain UTF-8", Syntax: true}
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")),
		len(data) >= 2 && (data[0] == 0) != (data[1] == 0):
		return &Error{Detail: "is not JSON: it looks like UTF-16 or UTF-32; send plain UTF-8", Syntax: true}
	}
	return nil
}

func translateSyntaxError(err *jsontext.SyntacticError, data []byte) *Error {
	if len(bytes.TrimSpace(data)) == 0 {
		return &Error{Detail: "is not JSON: it is empty", Syntax: true}
	}
	e := &Error{Pointer: clipPointer(err.JSONPointer), Offset: err.ByteOffset}
	if errors.Is(err.Err, jsontext.ErrDuplicateName) {
		e.Detail = fmt.Sprintf("name %s appears more than once", quoteExcerpt(err.JSONPointer.LastToken()))
		return e
	}
	e.Syntax = true
	reason := err.Err.Error()
	switch {
	case errors.Is(err.Err, io.ErrUnexpectedEOF):
		reason = "the text ends too early"
	case strings.Contains(reason, "invalid UTF-8"):
		reason = "invalid UTF-8"
	}
	e.Detail = "is not JSON: " + reason + positionSuffix(lineColumn(data, err.ByteOffset))
	return e
}

// lineColumn converts a byte offset to a line and a column, both from 1.
func lineColumn(data []byte, offset int64) (line, column int) {
	before := data[:min(int(offset), len(data))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

func translateSemanticError(err *json.SemanticError) *Error {
	e := &Error{Pointer: clipPointer(err.JSONPointer), Offset: err.ByteOffset}
	switch {
	case errors.Is(err.Err, json.ErrUnknownName):
		e.Detail = describeUnknown(err.JSONPointer.LastToken(), shapeOf(err.GoType))
	case errors.Is(err.Err, strconv.ErrRange):
		e.Detail = "is out of range: " + shortenText(string(err.JSONValue))
	case err.GoType == timeType && err.Err != nil:
		e.Detail = "must be " + describeType(timeType)
	case errors.Is(err.Err, strconv.ErrSyntax), err.Err == nil && err.GoType != nil:
		e.Detail = fmt.Sprintf("must be %s, got %s", describeType(err.GoType), describeValue(err))
	case err.Err != nil:
		e.Detail = err.Err.Error()
	default:
		e.Detail = "does not fit"
	}
	return e
}

// describeUnknown suggests the most similar member, or the object that has the member, or
// lists all members.
func describeUnknown(name string, s *typeShape) string {
	detail := "unknown member " + quoteExcerpt(name)
	plain := func(s string) string {
		return strings.NewReplacer("_", "", "-", "", " ", "").Replace(foldCase(s))
	}
	similar := slices.IndexFunc(s.names, func(known string) bool { return plain(known) == plain(name) })
	switch {
	case similar >= 0:
		return fmt.Sprintf("%s; did you mean %q?", detail, s.names[similar])
	case len(s.names) == 0:
		return detail
	}
	for _, outer := range s.names {
		if _, found := s.fields[outer].fields[name]; found {
			return fmt.Sprintf("%s; it belongs in %q", detail, outer)
		}
	}
	return fmt.Sprintf("%s; known here: %s", detail, strings.Join(s.names, ", "))
}

var timeType = reflect.TypeFor[time.Time]()

// describeType describes the JSON value that a Go type is decoded from.
func describeType(t reflect.Type) string {
	if t == timeType {
		return "a time such as 2026-01-02T15:04:05Z"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describeType(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0 up"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a base64 string"
		}
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "another value"
}

// describeValue describes the JSON value that was found by its kind or, if the kind
// is right, by the value itself.
func describeValue(err *json.SemanticError) string {
	switch err.JSONKind {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindNumber, jsontext.KindString:
		if err.Err != nil && len(err.JSONValue) > 0 {
			return shortenText(string(err.JSONValue))
		}
		if err.JSONKind == jsontext.KindNumber {
			return "a number"
		}
		return "a string"
	}
	return "something else"
}

// Limits for parts of a document in error texts.
const (
	maxPointer = 256
	maxExcerpt = 64
)

// clipPointer removes trailing members from a pointer that is too long, so that it
// still points at an existing value.
func clipPointer(p jsontext.Pointer) string {
	for len(p) > maxPointer {
		p = p.Parent()
	}
	return string(p)
}

func quoteExcerpt(name string) string { return strconv.Quote(shortenText(name)) }

func shortenText(s string) string {
	if len(s) <= maxExcerpt {
		return s
	}
	cut := maxExcerpt
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
