package strictjson

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of the nesting of arrays and objects. Real documents are far below them, and
// they keep the pointers in errors short.
const (
	MaxDepth = 256
	// maxDeepDepth is that of documents which contain others, each of which nests up to
	// MaxDepth.
	maxDeepDepth = 4 * MaxDepth
)

// The library rejects duplicate names, known names in another case, invalid UTF-8
// and trailing bytes by default.
var (
	strictOptions  = json.RejectUnknownMembers(true)
	lenientOptions = json.RejectUnknownMembers(false)
	// The second pass reads documents that the decoder has accepted.
	walkOptions = jsontext.AllowDuplicateNames(true)
)

// Unmarshal decodes data into the variable v points at. data must contain exactly
// one JSON value that matches v in every name and type; null is accepted only for a
// pointer, an interface or a raw value. Errors are of type [*Error]; the content of
// the variable is then undefined.
func Unmarshal(data []byte, v any) error { return unmarshal(data, v, MaxDepth) }

// UnmarshalDeep is Unmarshal for documents that the project has written around documents
// of others, for example the record of a request, which contains inputs of the caller and
// results of agents. Such a document nests deeper than those in it.
func UnmarshalDeep(data []byte, v any) error { return unmarshal(data, v, maxDeepDepth) }

func unmarshal(data []byte, v any, maxDepth int) error {
	if e := checkDepth(data, maxDepth); e != nil {
		return e
	}
	if err := json.Unmarshal(data, v, strictOptions); err != nil {
		return translateError(err, data)
	}
	// The library converts null to the zero value, so a second pass rejects it. Most
	// documents do not contain the word.
	if bytes.Contains(data, []byte("null")) {
		return walkDocument(data, v, secondPass{rejectNull: true})
	}
	return nil
}

// UnmarshalAllowUnknown is Unmarshal for documents of other systems: unknown names
// are ignored, and null counts as absent. Duplicate names (known or not), names that
// differ from a known one only by case, invalid UTF-8 and trailing bytes are errors,
// because a forged document could use them to be read differently elsewhere.
func UnmarshalAllowUnknown(data []byte, v any) error {
	return unmarshalAllowUnknown(data, v, MaxDepth)
}

// UnmarshalDeepAllowUnknown is UnmarshalAllowUnknown for the documents of UnmarshalDeep,
// which a newer version may have written.
func UnmarshalDeepAllowUnknown(data []byte, v any) error {
	return unmarshalAllowUnknown(data, v, maxDeepDepth)
}

func unmarshalAllowUnknown(data []byte, v any, maxDepth int) error {
	if e := checkDepth(data, maxDepth); e != nil {
		return e
	}
	if err := json.Unmarshal(data, v, lenientOptions); err != nil {
		return translateError(err, data)
	}
	return walkDocument(data, v, secondPass{rejectCaseVariants: true})
}

// checkDepth rejects nesting deeper than limit, because the library's own limit is
// 10,000. Documents with no more brackets than that are not scanned.
func checkDepth(data []byte, limit int) *Error {
	if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) <= limit {
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++ // an escaped character does not end the string
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth > limit {
				return &Error{Detail: fmt.Sprintf("nests deeper than %d levels", limit), Offset: int64(i)}
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return nil
}
