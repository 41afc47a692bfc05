package strictjson

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep arrays and objects may nest. Nothing we exchange comes
// near it, and it keeps the pointers in error texts short.
const MaxDepth = 256

// The options of the two ways to decode. Refusing duplicate names, other cases
// of a name, invalid UTF-8 and trailing bytes is what the library does unasked.
var (
	strictOptions  = json.RejectUnknownMembers(true)
	lenientOptions = json.RejectUnknownMembers(false)
	// The walk reads what a decoder has accepted already.
	walkOptions = jsontext.AllowDuplicateNames(true)
)

// Unmarshal decodes data, which must hold exactly one JSON value that fits v in
// every name and type, into the variable v points at. Any error is an [*Error];
// the variable's content is then undefined.
//
// null is taken only where the Go type is a pointer, an interface or a raw
// value.
func Unmarshal(data []byte, v any) error {
	if e := checkDepth(data); e != nil {
		return e
	}
	if err := json.Unmarshal(data, v, strictOptions); err != nil {
		return translateError(err, data)
	}
	// The library turns null into the zero value. Documents without the word
	// need no second look, and that is nearly all of them.
	if bytes.Contains(data, []byte("null")) {
		return walkDocument(data, v, secondPass{rejectNull: true})
	}
	return nil
}

// UnmarshalAllowUnknown decodes someone else's document into v: names v does not know
// are ignored, and null counts as absent. Duplicate names (known or not), names
// that differ from a known one only by case, invalid UTF-8 and trailing bytes
// are errors still, because they are how a forged envelope means two things.
func UnmarshalAllowUnknown(data []byte, v any) error {
	if e := checkDepth(data); e != nil {
		return e
	}
	if err := json.Unmarshal(data, v, lenientOptions); err != nil {
		return translateError(err, data)
	}
	return walkDocument(data, v, secondPass{rejectCaseVariants: true})
}

// checkDepth refuses what nests deeper than MaxDepth; the library's own bound is
// 10,000. Most documents have fewer brackets than that and are not looked at.
func checkDepth(data []byte) *Error {
	if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) <= MaxDepth {
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++ // whatever is escaped ends no string
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth > MaxDepth {
				return &Error{Detail: fmt.Sprintf("nests deeper than %d levels", MaxDepth), Offset: int64(i)}
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return nil
}
