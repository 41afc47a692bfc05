package strictjson

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// walker reads a document a second time beside the Go type it was decoded into,
// for the two checks no option of the library gives.
type walker struct {
	dec            *jsontext.Decoder
	refuseNull     bool // null where the type has no room for it
	refuseVariants bool // names that differ from a known one only by case
}

// walk checks data, which was decoded into v without an error.
func walk(data []byte, v any, w walker) error {
	w.dec = jsontext.NewDecoder(bytes.NewBuffer(data), walkOptions)
	// v is the pointer to decode into, which null cannot reach.
	if e := w.value(shapeOf(reflect.TypeOf(v).Elem())); e != nil {
		return e
	}
	return nil
}

func (w *walker) value(s *shape) *Error {
	kind := w.dec.PeekKind()
	switch {
	case kind == jsontext.KindNull:
		return w.null(s)
	case s.free:
		return w.unreadable(w.dec.SkipValue())
	case kind == jsontext.KindBeginObject:
		return w.object(s)
	case kind == jsontext.KindBeginArray && s.elem != nil:
		return w.array(s.elem)
	}
	return w.unreadable(w.dec.SkipValue())
}

func (w *walker) null(s *shape) *Error {
	if err := w.dec.SkipValue(); err != nil {
		return w.unreadable(err)
	}
	if s.nullable || !w.refuseNull {
		return nil
	}
	return w.errorf("must be %s, got null", s.want)
}

func (w *walker) object(s *shape) *Error {
	if _, err := w.dec.ReadToken(); err != nil {
		return w.unreadable(err)
	}
	for w.dec.PeekKind() != jsontext.KindEndObject {
		name, err := w.dec.ReadToken()
		if err != nil {
			return w.unreadable(err)
		}
		member, e := w.member(s, name.String())
		if e != nil {
			return e
		}
		if member == nil {
			if err := w.dec.SkipValue(); err != nil {
				return w.unreadable(err)
			}
			continue
		}
		if e := w.value(member); e != nil {
			return e
		}
	}
	_, err := w.dec.ReadToken()
	return w.unreadable(err)
}

// member returns the shape of the member of that name, nil for one that is
// unknown and ignored.
func (w *walker) member(s *shape, name string) (*shape, *Error) {
	if s.fields == nil {
		return s.elem, nil
	}
	if member, ok := s.fields[name]; ok {
		return member, nil
	}
	if known, ok := s.folded[fold(name)]; ok && w.refuseVariants {
		return nil, w.errorf("name %s differs from %q only by case", quote(name), known)
	}
	return nil, nil
}

func (w *walker) array(elem *shape) *Error {
	if _, err := w.dec.ReadToken(); err != nil {
		return w.unreadable(err)
	}
	for w.dec.PeekKind() != jsontext.KindEndArray {
		if e := w.value(elem); e != nil {
			return e
		}
	}
	_, err := w.dec.ReadToken()
	return w.unreadable(err)
}

// errorf makes an error at the token read last.
func (w *walker) errorf(format string, args ...any) *Error {
	return &Error{
		Pointer: clip(w.dec.StackPointer()),
		Detail:  fmt.Sprintf(format, args...),
		Offset:  w.dec.InputOffset(),
	}
}

// unreadable turns a decoder's error, which cannot happen in a document that
// was decoded before, into a refusal rather than a silent pass.
func (w *walker) unreadable(err error) *Error {
	if err == nil {
		return nil
	}
	return &Error{Pointer: clip(w.dec.StackPointer()), Detail: err.Error(), Offset: w.dec.InputOffset()}
}
