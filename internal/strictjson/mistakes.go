package strictjson

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of the work for a document with mistakes, which is decoded once for each.
const (
	maxMistakes        = 10
	maxMistakenDocSize = 64 << 10 // bytes
)

// Mistakes returns the error that [Unmarshal] has returned for data and v, and those that it
// returns for data without the members at which there are errors: at most 10. It returns only
// the first if the document is not JSON or longer than 64 KiB, and ends at a mistake in an
// element of an array.
func Mistakes(data []byte, v any, first *Error) []*Error {
	list := []*Error{first}
	if first.Syntax || len(data) > maxMistakenDocSize {
		return list
	}
	for len(list) < maxMistakes {
		rest, found := removeMember(data, jsontext.Pointer(list[len(list)-1].Pointer))
		if !found {
			break
		}
		err := Unmarshal(rest, reflect.New(reflect.TypeOf(v).Elem()).Interface())
		next, ok := errors.AsType[*Error](err)
		if !ok {
			break
		}
		list, data = append(list, next), rest
	}
	return list
}

// removeMember returns the document without the members at the pointer, and reports whether there
// are any.
func removeMember(data []byte, at jsontext.Pointer) (rest []byte, found bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), walkOptions)
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, walkOptions)
	for dec.PeekKind() != jsontext.KindInvalid {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, false
		}
		kind, read := dec.StackIndex(dec.StackDepth())
		if isName := kind == jsontext.KindBeginObject && read%2 == 1; isName && dec.StackPointer() == at {
			found = true
			err = dec.SkipValue()
		} else {
			err = enc.WriteToken(token)
		}
		if err != nil {
			return nil, false
		}
	}
	return out.Bytes(), found
}
