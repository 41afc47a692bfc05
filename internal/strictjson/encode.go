package strictjson

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// encodeOptions make the encoding deterministic. Invalid UTF-8 in a string is
// replaced by U+FFFD, so that one invalid byte does not make the whole document
// fail.
var encodeOptions = json.JoinOptions(
	json.Deterministic(true),
	jsontext.AllowInvalidUTF8(true),
)

// Marshal encodes v as minified JSON: members in the order of the struct, map
// members sorted, nil slices as [], nil maps as {}, HTML not escaped.
func Marshal(v any) ([]byte, error) {
	return json.Marshal(v, encodeOptions)
}

// MarshalWrite is [Marshal] to a writer, without a newline at the end. Bytes may
// have been written when it returns an error.
func MarshalWrite(w io.Writer, v any) error {
	return json.MarshalWrite(w, v, encodeOptions)
}

// AppendString appends the string as [Marshal] encodes it.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error reports bytes that it has replaced
	return dst
}

// QuoteString returns the string as [Marshal] encodes it. Unlike Marshal it cannot fail.
func QuoteString(s string) []byte { return AppendString(nil, s) }

// MarshalIndent is [Marshal] with one member or element a line, for people.
func MarshalIndent(v any) ([]byte, error) {
	return json.Marshal(v, encodeOptions, jsontext.WithIndent("  "))
}
