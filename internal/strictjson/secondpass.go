package strictjson

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// secondPass reads a document a second time, together with the Go type it was
// decoded into, for two checks that the library has no option for.
type secondPass struct {
	dec                *jsontext.Decoder
	rejectNull         bool // for types that cannot represent it
	rejectCaseVariants bool // names that differ from a known one only by case
}

// walkDocument checks data that was decoded into v without an error.
func walkDocument(data []byte, v any, w secondPass) error {
	w.dec = jsontext.NewDecoder(bytes.NewBuffer(data), walkOptions)
	// v is the pointer to decode into, so the shape is that of its element.
	if e := w.checkValue(shapeOf(reflect.TypeOf(v).Elem())); e != nil {
		return e
	}
	return nil
}

func (w *secondPass) checkValue(s *typeShape) *Error {
	kind := w.dec.PeekKind()
	switch {
	case kind == jsontext.KindNull:
		return w.checkNull(s)
	case s.opaque:
		return w.decoderError(w.dec.SkipValue())
	case kind == jsontext.KindBeginObject:
		return w.checkObject(s)
	case kind == jsontext.KindBeginArray && s.elem != nil:
		return w.checkArray(s.elem)
	}
	return w.decoderError(w.dec.SkipValue())
}

func (w *secondPass) checkNull(s *typeShape) *Error {
	if err := w.dec.SkipValue(); err != nil {
		return w.decoderError(err)
	}
	if s.nullable || !w.rejectNull {
		return nil
	}
	return w.errorf("must be %s, got null", s.want)
}

func (w *secondPass) checkObject(s *typeShape) *Error {
	if _, err := w.dec.ReadToken(); err != nil {
		return w.decoderError(err)
	}
	for w.dec.PeekKind() != jsontext.KindEndObject {
		name, err := w.dec.ReadToken()
		if err != nil {
			return w.decoderError(err)
		}
		member, e := w.memberShape(s, name.String())
		if e != nil {
			return e
		}
		if member == nil {
			if err := w.dec.SkipValue(); err != nil {
				return w.decoderError(err)
			}
			continue
		}
		if e := w.checkValue(member); e != nil {
			return e
		}
	}
	_, err := w.dec.ReadToken()
	return w.decoderError(err)
}

// memberShape returns the shape of the named member, or nil if the member is unknown
// and ignored.
func (w *secondPass) memberShape(s *typeShape, name string) (*typeShape, *Error) {
	if s.fields == nil {
		return s.elem, nil
	}
	if member, ok := s.fields[name]; ok {
		return member, nil
	}
	if known, ok := s.folded[foldCase(name)]; ok && w.rejectCaseVariants {
		return nil, w.errorf("name %s differs from %q only by case", quoteExcerpt(name), known)
	}
	return nil, nil
}

func (w *secondPass) checkArray(elem *typeShape) *Error {
	if _, err := w.dec.ReadToken(); err != nil {
		return w.decoderError(err)
	}
	for w.dec.PeekKind() != jsontext.KindEndArray {
		if e := w.checkValue(elem); e != nil {
			return e
		}
	}
	_, err := w.dec.ReadToken()
	return w.decoderError(err)
}

// errorf returns an error at the last token.
func (w *secondPass) errorf(format string, args ...any) *Error {
	return &Error{
		Pointer: clipPointer(w.dec.StackPointer()),
		Detail:  fmt.Sprintf(format, args...),
		Offset:  w.dec.InputOffset(),
	}
}

// decoderError converts an error of the decoder. None is expected, because the
// document was decoded before; if one occurs, the document is rejected.
func (w *secondPass) decoderError(err error) *Error {
	if err == nil {
		return nil
	}
	return &Error{Pointer: clipPointer(w.dec.StackPointer()), Detail: err.Error(), Offset: w.dec.InputOffset()}
}
