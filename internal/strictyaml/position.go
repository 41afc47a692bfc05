package strictyaml

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// Path is the path from the root of a document to a value: a string is a key of a
// mapping, an int is an index of a list.
type Path []any

// At returns the path of the steps.
func At(steps ...any) Path { return steps }

// At returns p extended by the steps.
func (p Path) At(steps ...any) Path { return append(slices.Clip(p), steps...) }

// Errorf adds an error about the value at the path or, if it is absent, about the
// nearest enclosing value. It does not add a second error about a value that is
// already known to be invalid, in whole or in part, or is inside a rejected one.
func (d *Document) Errorf(at Path, format string, args ...any) {
	for i := range at {
		if _, outer := d.findNode(at[:i]); d.rejected[outer] {
			return
		}
	}
	_, value := d.findNode(at)
	if !d.invalid[value] && !d.rejected[value] {
		d.addError(value.Line, value.Column, format, args...)
	}
}

// KeyErrorf adds an error about the last key of the path.
func (d *Document) KeyErrorf(at Path, format string, args ...any) {
	key, value := d.findNode(at)
	if key == nil {
		key = value
	}
	d.addError(key.Line, key.Column, format, args...)
}

// Pos returns the position of the value at the path or, if it is absent, of the
// nearest enclosing value.
func (d *Document) Pos(steps ...any) (line, column int) {
	_, value := d.findNode(steps)
	return value.Line, value.Column
}

// Contains reports whether the document has a value at the path.
func (d *Document) Contains(steps ...any) bool {
	value := d.root
	for _, step := range steps {
		if _, value = d.findChild(value, step); value == nil {
			return false
		}
	}
	return true
}

// IsInvalid reports whether the value at the path or, if it is absent, the nearest
// enclosing value was decoded with an error.
func (d *Document) IsInvalid(steps ...any) bool {
	_, value := d.findNode(steps)
	return d.invalid[value]
}

// findNode follows the path as far as it exists. key is nil for the root and for
// items of a list.
func (d *Document) findNode(at Path) (key, value *yaml.Node) {
	value = d.root
	for _, step := range at {
		nextKey, next := d.findChild(value, step)
		if next == nil {
			break
		}
		key, value = nextKey, next
	}
	return key, value
}

func (d *Document) findChild(n *yaml.Node, step any) (key, value *yaml.Node) {
	switch step := step.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && step >= 0 && step < len(n.Content) {
			return nil, n.Content[step]
		}
	case string:
		if n.Kind != yaml.MappingNode {
			return nil, nil
		}
		if i, ok := d.keysOf(n)[step]; ok {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// keysOf returns the index of each key in the content of a mapping. It is built
// once, so that many errors in a large file do not each scan the mapping.
func (d *Document) keysOf(n *yaml.Node) map[string]int {
	keys, ok := d.index[n]
	if !ok {
		keys = make(map[string]int, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !d.rejected[n.Content[i]] {
				keys[n.Content[i].Value] = i
			}
		}
		d.index[n] = keys
	}
	return keys
}
