package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"gopkg.in/yaml.v3"
)

// The bounds of a file.
const (
	MaxBytes = 64 << 20
	MaxDepth = 64 // lists and mappings inside each other
)

// Document is one parsed file: its values with their places, and the mistakes
// found so far. It is not for use by several goroutines.
type Document struct {
	findings

	root    *yaml.Node
	refused map[*yaml.Node]bool           // keys and values that check found wrong
	broken  map[*yaml.Node]bool           // values with a mistake in or below them
	index   map[*yaml.Node]map[string]int // of mappings: key → its place in Content
}

// Parse reads data as one YAML document and checks all that does not depend on
// what it is decoded into. file names the source in errors.
//
// The error is Errors, for what is not one YAML document at all. Lesser mistakes
// (aliases, tags, duplicate keys) leave a document whose Err tells them together
// with those that Decode finds.
func Parse(file string, data []byte) (*Document, error) {
	d := &Document{
		findings: findings{file: file},
		refused:  map[*yaml.Node]bool{},
		broken:   map[*yaml.Node]bool{},
		index:    map[*yaml.Node]map[string]int{},
	}
	if len(data) > MaxBytes {
		d.add(0, 0, "is %d bytes long; at most %d are read", len(data), MaxBytes)
		return nil, d.err()
	}
	if e := unreadable(data); e != nil {
		d.add(e.Line, e.Column, "%s", e.Detail)
		return nil, d.err()
	}
	if e := d.load(data); e != nil {
		d.add(e.Line, e.Column, "%s", e.Detail)
		return nil, d.err()
	}
	d.check(d.root, 0)
	return d, nil
}

// Decode parses data and decodes it into the struct v points at; see
// [Document.Decode].
func Decode(file string, data []byte, v any, opts ...Option) error {
	d, err := Parse(file, data)
	if err != nil {
		return err
	}
	return d.Decode(v, opts...)
}

// Err returns the mistakes found so far as Errors, nil when there are none.
func (d *Document) Err() error { return d.err() }

// load parses data into the root node. The parser panics on some hostile input;
// no outside byte ends the process.
func (d *Document) load(data []byte) (e *Error) {
	defer func() {
		if r := recover(); r != nil {
			e = &Error{Detail: fmt.Sprintf("cannot be parsed: %v", r)}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return empty()
	case err != nil:
		return explain(err, data)
	case len(first.Content) != 1:
		return empty()
	}
	d.root = first.Content[0]
	if isNull(d.root) && d.root.Anchor == "" {
		return empty()
	}
	// Further documents would be ignored silently: "---" is easily typed.
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return explain(err, data)
	}
	return &Error{Line: second.Line, Column: second.Column, Detail: `a second document starts here; a file holds one: remove the "---"`}
}

func empty() *Error { return &Error{Line: 1, Column: 1, Detail: "is empty"} }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// refuse records a mistake about n, which Decode then passes over.
func (d *Document) refuse(n *yaml.Node, format string, args ...any) {
	d.refused[n] = true
	d.add(n.Line, n.Column, format, args...)
}

// check refuses the parts of YAML that are not for configuration files, in n
// and below. It never follows an alias.
func (d *Document) check(n *yaml.Node, depth int) {
	if depth > MaxDepth {
		d.refuse(n, "nests deeper than %d levels", MaxDepth)
		return
	}
	d.checkProperties(n)
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			d.check(item, depth+1)
		}
	case yaml.MappingNode:
		d.checkKeys(n)
		for _, value := range pairs(n) {
			d.check(value, depth+1)
		}
	}
}

// checkProperties refuses what may stand before a value, or in its place.
func (d *Document) checkProperties(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.refuse(n, "aliases (*%s) are not supported; write the value out", excerpt(n.Value))
	case n.Anchor != "":
		d.refuse(n, "anchors (&%s) are not supported; remove it", excerpt(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		d.refuse(n, "tags (%s) are not supported; remove it", excerpt(n.Tag))
	}
}

// checkKeys wants every key of a mapping to be text and there only once.
func (d *Document) checkKeys(n *yaml.Node) {
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for key := range pairs(n) {
		d.checkProperties(key)
		switch {
		case d.refused[key]:
		case key.Kind != yaml.ScalarNode:
			d.refuse(key, "a key must be a word, not %s", kindOf(key))
		case key.Tag == "!!merge":
			d.refuse(key, "merge keys (<<) are not supported; write the keys out")
		case key.Tag != "!!str":
			d.refuse(key, "a key must be text, got %s; quote it: %q", kindOf(key), excerpt(key.Value))
		case seen[key.Value] != nil:
			d.refuse(key, "duplicate key %q; it is also on line %d", excerpt(key.Value), seen[key.Value].Line)
		default:
			seen[key.Value] = key
		}
	}
}

// pairs walks the keys and values of a mapping.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}
