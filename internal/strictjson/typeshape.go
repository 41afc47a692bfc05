package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unicode"

	jsonv2 "github.com/go-json-experiment/json"
)

// typeShape describes a Go type for the second pass: if it accepts null and which
// names it has. It is immutable once it is in shapes.
type typeShape struct {
	nullable bool   // a pointer, an interface or a raw value
	opaque   bool   // free-form, or with its own decoder: not checked inside
	want     string // "a string", for error texts

	elem   *typeShape            // of arrays and of objects with any names
	fields map[string]*typeShape // of structs; nil otherwise
	folded map[string]string     // folded name → name, of structs
	names  []string              // of structs, in the order of the fields
}

// shapes caches shapeOf by type.
var shapes sync.Map // reflect.Type → *shape

func shapeOf(t reflect.Type) *typeShape {
	if s, ok := shapes.Load(t); ok {
		return s.(*typeShape)
	}
	s := shapeBuilder{}.buildShape(t)
	shapes.Store(t, s)
	return s
}

// shapeBuilder contains the shapes under construction, for recursive types.
type shapeBuilder map[reflect.Type]*typeShape

func (b shapeBuilder) buildShape(t reflect.Type) *typeShape {
	if s, ok := b[t]; ok {
		return s
	}
	s := &typeShape{want: describeType(t)}
	b[t] = s
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		s.opaque, s.nullable = true, true
	case t.Kind() == reflect.Interface:
		s.opaque, s.nullable = true, true
	case t.Kind() == reflect.Pointer:
		// The copy shares the element's maps, so it is complete even if the element
		// is still under construction.
		*s = *b.buildShape(t.Elem())
		s.nullable = true
	case decodesItself(t):
		s.opaque = true
	case t.Kind() == reflect.Struct:
		s.fields, s.folded = map[string]*typeShape{}, map[string]string{}
		b.addFields(s, t)
	case t.Kind() == reflect.Map, t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		s.elem = b.buildShape(t.Elem())
	}
	return s
}

// addFields adds the members of struct type t to s. The members of an embedded
// struct without a name are added after them, unless s has a member of that name.
func (b shapeBuilder) addFields(s *typeShape, t reflect.Type) {
	var inner []reflect.Type
	for f := range t.Fields() {
		name, embedded := memberName(f)
		if embedded {
			inner = append(inner, dereference(f.Type))
		}
		if _, shadowed := s.fields[name]; name == "" || shadowed {
			continue
		}
		s.fields[name] = b.buildShape(f.Type)
		s.folded[foldCase(name)] = name
		s.names = append(s.names, name)
	}
	for _, t := range inner {
		b.addFields(s, t)
	}
}

// memberName returns the JSON name of a struct field. If the field is an embedded
// struct without a name, embedded is true. Both are zero for a field that is not
// part of the document.
func memberName(f reflect.StructField) (name string, embedded bool) {
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", false
	}
	name, _, _ = strings.Cut(tag, ",")
	switch {
	case name != "" && f.IsExported():
		return name, false
	case f.Anonymous && dereference(f.Type).Kind() == reflect.Struct:
		return "", true
	case f.IsExported():
		return f.Name, false
	}
	return "", false
}

func dereference(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// decodesItself reports whether t has its own decoder.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[jsonv2.UnmarshalerFrom]()) ||
		p.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// foldCase maps every rune to the smallest rune that differs from it only by case,
// so that two names have the same result exactly if strings.EqualFold is true.
func foldCase(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}
