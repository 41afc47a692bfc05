package strictyaml

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// Option is an option of Decode.
type Option func(*decoder)

// ScalarOrList accepts a scalar for the list type T: all for [all].
func ScalarOrList[T ~[]string]() Option {
	return func(d *decoder) { d.scalarOrList[reflect.TypeFor[T]()] = true }
}

// NumberAsText accepts an unquoted number for the string type T: 0.8 for "0.8".
func NumberAsText[T ~string]() Option {
	return func(d *decoder) { d.numberAsText[reflect.TypeFor[T]()] = true }
}

// Decode decodes the document into the struct v points at, by `yaml` tags. Unknown
// keys, values of another type and keys without a value are errors. Fields without
// a key keep their value. Decode continues after an error, and returns all errors of
// the document so far.
//
// It supports structs, pointers, slices, maps with string keys, strings, booleans
// and numbers, and null only for a pointer.
func (d *Document) Decode(v any, opts ...Option) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("decode %s: the target is %T, not a pointer", d.file, v)
	}
	dec := decoder{
		Document:     d,
		structs:      map[reflect.Type]*structKeys{},
		scalarOrList: map[reflect.Type]bool{},
		numberAsText: map[reflect.Type]bool{},
	}
	for _, o := range opts {
		o(&dec)
	}
	dec.decodeValue(d.root, target.Elem())
	return d.sorted()
}

// decoder is the state of one Decode.
type decoder struct {
	*Document
	structs      map[reflect.Type]*structKeys
	scalarOrList map[reflect.Type]bool
	numberAsText map[reflect.Type]bool
	validator    *Validator // for a schema
}

// addErrorAt adds an error about the value n and returns false.
func (d *decoder) addErrorAt(n *yaml.Node, format string, args ...any) bool {
	d.addError(n.Line, n.Column, format, args...)
	return false
}

// decodeValue decodes n into v and reports whether all of it is valid.
func (d *decoder) decodeValue(n *yaml.Node, v reflect.Value) bool {
	ok := d.decodeNode(n, v)
	if !ok {
		d.invalid[n] = true
	}
	return ok
}

func (d *decoder) decodeNode(n *yaml.Node, v reflect.Value) bool {
	if d.rejected[n] {
		return false
	}
	if v.Kind() == reflect.Pointer {
		if isNull(n) {
			v.SetZero()
			return true
		}
		v.Set(reflect.New(v.Type().Elem()))
		return d.decodeNode(n, v.Elem())
	}
	if isNull(n) {
		return d.addErrorAt(n, "there is no value here; write %s or remove the key", describeType(v.Type()))
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.decodeStruct(n, v)
	case reflect.Map:
		return d.decodeMap(n, v)
	case reflect.Slice:
		return d.decodeList(n, v)
	}
	return d.decodeScalar(n, v)
}

func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value) bool {
	keys, ok := d.keysOfStruct(v.Type()), true
	if n.Kind != yaml.MappingNode {
		known := ""
		if n != d.root { // all keys of a file are too many
			known = "; known here: " + strings.Join(keys.names, ", ")
		}
		return d.addErrorAt(n, "must be %s, got %s%s", describeType(v.Type()), describeNode(n), known)
	}
	for key, value := range mappingPairs(n) {
		field, known := keys.field[key.Value]
		switch {
		case d.rejected[key]:
			ok = false
		case !known:
			ok = d.addErrorAt(key, "%s", keys.describeUnknown(key.Value))
		case !d.addSynonym(n, key, keys.synonyms[key.Value]):
			ok = false
		default:
			ok = d.decodeValue(value, v.Field(field)) && ok
		}
	}
	return ok
}

// addSynonym makes the value of key known under the second name of the key as well, so
// that a path with either name finds it. It rejects key if the mapping n has both.
func (d *decoder) addSynonym(n, key *yaml.Node, synonym string) bool {
	if synonym == "" {
		return true
	}
	index := d.keysOf(n)
	here := index[key.Value]
	switch other, both := index[synonym]; {
	case !both:
		index[synonym] = here
	case other < here:
		first := n.Content[other]
		d.rejectNode(key, "%q is another name for %q, which is at %d:%d; keep one of them", key.Value, synonym, first.Line, first.Column)
		index[key.Value] = other
		return false
	}
	return true
}

func (d *decoder) decodeMap(n *yaml.Node, v reflect.Value) bool {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		return d.unsupportedType(n, t)
	}
	if n.Kind != yaml.MappingNode {
		remedy := ""
		if n.Kind == yaml.SequenceNode && t.Elem().Kind() == reflect.Struct {
			remedy = "; write the name of each entry as its key"
		}
		return d.addErrorAt(n, "must be %s, got %s%s", describeType(t), describeNode(n), remedy)
	}
	m, ok := reflect.MakeMapWithSize(t, len(n.Content)/2), true
	for key, value := range mappingPairs(n) {
		if d.rejected[key] {
			ok = false
			continue
		}
		k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		k.SetString(key.Value)
		ok = d.decodeValue(value, e) && ok
		m.SetMapIndex(k, e)
	}
	v.Set(m)
	return ok
}

func (d *decoder) decodeList(n *yaml.Node, v reflect.Value) bool {
	t := v.Type()
	if d.scalarOrList[t] && n.Kind == yaml.ScalarNode {
		v.Set(reflect.MakeSlice(t, 1, 1))
		return d.decodeScalar(n, v.Index(0))
	}
	if n.Kind != yaml.SequenceNode {
		remedy := ""
		if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && t.Elem().Kind() == reflect.String {
			remedy = "; write " + inBrackets(n.Value)
		}
		return d.addErrorAt(n, "must be %s, got %s%s", describeType(t), describeNode(n), remedy)
	}
	s, ok := reflect.MakeSlice(t, len(n.Content), len(n.Content)), true
	for i, item := range n.Content {
		ok = d.decodeValue(item, s.Index(i)) && ok
	}
	v.Set(s)
	return ok
}

// plainList matches texts that are a list of unquoted texts in brackets.
var plainList = regexp.MustCompile(`^[\pL_][\pL\pN_ .-]*(, ?[\pL_][\pL\pN_ .-]*)*$`)

// inBrackets returns the text as a list: [a] for a, [a, b] for "a, b".
func inBrackets(text string) string {
	text = shortenText(text)
	if plainList.MatchString(text) {
		return "[" + text + "]"
	}
	return fmt.Sprintf("[%q]", text)
}

func (d *decoder) unsupportedType(n *yaml.Node, t reflect.Type) bool {
	return d.addErrorAt(n, "cannot be decoded into a Go %s", t)
}
