package strictjson

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// encodeOptions make the same value the same bytes. A string that is not valid
// UTF-8 is written with U+FFFD in place of the bad bytes: one odd byte in a text
// must not cost a caller the whole answer.
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
