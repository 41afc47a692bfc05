package strictyaml

import (
	"fmt"
	"reflect"

	"gopkg.in/yaml.v3"
)

// Option changes how values are decoded.
type Option func(*decoder)

// ScalarOrList lets the list type T be written as a single word as well: "all"
// for ["all"].
func ScalarOrList[T ~[]string]() Option {
	return func(d *decoder) { d.wordOrList[reflect.TypeFor[T]()] = true }
}

// NumberAsText lets the string type T be written as a number as well: 0.8 for
// "0.8", beside a word such as auto.
func NumberAsText[T ~string]() Option {
	return func(d *decoder) { d.wordOrNumber[reflect.TypeFor[T]()] = true }
}

// Decode decodes the document into the struct v points at, by `yaml` tags: keys
// the struct does not have are mistakes, as are values of another type and keys
// without a value. What the file does not name keeps the value it had. All
// mistakes are recorded and returned with those recorded before; what could be
// decoded is decoded even so.
//
// Structs, pointers, slices, maps with string keys, strings, booleans and
// numbers can be decoded; null only into a pointer.
func (d *Document) Decode(v any, opts ...Option) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("decode %s: the target is %T, not a pointer", d.file, v)
	}
	dec := decoder{
		Document:     d,
		structs:      map[reflect.Type]*structKeys{},
		wordOrList:   map[reflect.Type]bool{},
		wordOrNumber: map[reflect.Type]bool{},
	}
	for _, o := range opts {
		o(&dec)
	}
	dec.value(d.root, target.Elem())
	return d.err()
}

type decoder struct {
	*Document
	structs      map[reflect.Type]*structKeys
	wordOrList   map[reflect.Type]bool
	wordOrNumber map[reflect.Type]bool
}

// wrong records a mistake about the value n and returns false.
func (d *decoder) wrong(n *yaml.Node, format string, args ...any) bool {
	d.add(n.Line, n.Column, format, args...)
	return false
}

// value decodes n into v, and reports whether all of it was right.
func (d *decoder) value(n *yaml.Node, v reflect.Value) bool {
	ok := d.decode(n, v)
	if !ok {
		d.broken[n] = true
	}
	return ok
}

func (d *decoder) decode(n *yaml.Node, v reflect.Value) bool {
	if d.refused[n] {
		return false
	}
	if v.Kind() == reflect.Pointer {
		if isNull(n) {
			v.SetZero()
			return true
		}
		v.Set(reflect.New(v.Type().Elem()))
		return d.decode(n, v.Elem())
	}
	if isNull(n) {
		return d.wrong(n, "there is no value here; write %s or remove the key", want(v.Type()))
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.structure(n, v)
	case reflect.Map:
		return d.dictionary(n, v)
	case reflect.Slice:
		return d.list(n, v)
	}
	return d.scalar(n, v)
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value) bool {
	if n.Kind != yaml.MappingNode {
		return d.wrong(n, "must be %s, got %s", want(v.Type()), kindOf(n))
	}
	keys, ok := d.keys(v.Type()), true
	for key, value := range pairs(n) {
		field, known := keys.field[key.Value]
		switch {
		case d.refused[key]:
			ok = false
		case !known:
			ok = d.wrong(key, "%s", keys.unknown(key.Value))
		default:
			ok = d.value(value, v.Field(field)) && ok
		}
	}
	return ok
}

func (d *decoder) dictionary(n *yaml.Node, v reflect.Value) bool {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		return d.unsupported(n, t)
	}
	if n.Kind != yaml.MappingNode {
		return d.wrong(n, "must be %s, got %s", want(t), kindOf(n))
	}
	m, ok := reflect.MakeMapWithSize(t, len(n.Content)/2), true
	for key, value := range pairs(n) {
		if d.refused[key] {
			ok = false
			continue
		}
		k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		k.SetString(key.Value)
		ok = d.value(value, e) && ok
		m.SetMapIndex(k, e)
	}
	v.Set(m)
	return ok
}

func (d *decoder) list(n *yaml.Node, v reflect.Value) bool {
	t := v.Type()
	if d.wordOrList[t] && n.Kind == yaml.ScalarNode {
		v.Set(reflect.MakeSlice(t, 1, 1))
		return d.scalar(n, v.Index(0))
	}
	if n.Kind != yaml.SequenceNode {
		return d.wrong(n, "must be %s, got %s", want(t), kindOf(n))
	}
	s, ok := reflect.MakeSlice(t, len(n.Content), len(n.Content)), true
	for i, item := range n.Content {
		ok = d.value(item, s.Index(i)) && ok
	}
	v.Set(s)
	return ok
}

func (d *decoder) unsupported(n *yaml.Node, t reflect.Type) bool {
	return d.wrong(n, "cannot be decoded into a Go %s", t)
}
