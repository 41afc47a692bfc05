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
	errorList

	root     *yaml.Node
	rejected map[*yaml.Node]bool           // keys and values that check found wrong
	invalid  map[*yaml.Node]bool           // values with a mistake in or below them
	index    map[*yaml.Node]map[string]int // of mappings: key → its place in Content
}

// Parse reads data as one YAML document and checks all that does not depend on
// what it is decoded into. file names the source in errors.
//
// The error is Errors, for what is not one YAML document at all. Lesser mistakes
// (aliases, tags, duplicate keys) leave a document whose Err tells them together
// with those that Decode finds.
func Parse(file string, data []byte) (*Document, error) {
	d := &Document{
		errorList: errorList{file: file},
		rejected:  map[*yaml.Node]bool{},
		invalid:   map[*yaml.Node]bool{},
		index:     map[*yaml.Node]map[string]int{},
	}
	if len(data) > MaxBytes {
		d.addError(0, 0, "is %d bytes long; at most %d are read", len(data), MaxBytes)
		return nil, d.sorted()
	}
	if e := checkText(data); e != nil {
		d.addError(e.Line, e.Column, "%s", e.Detail)
		return nil, d.sorted()
	}
	if e := d.parseNodes(data); e != nil {
		d.addError(e.Line, e.Column, "%s", e.Detail)
		return nil, d.sorted()
	}
	d.checkNode(d.root, 0)
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
func (d *Document) Err() error { return d.sorted() }

// parseNodes parses data into the root node. The parser panics on some hostile input;
// no outside byte ends the process.
func (d *Document) parseNodes(data []byte) (e *Error) {
	defer func() {
		if r := recover(); r != nil {
			e = &Error{Detail: fmt.Sprintf("cannot be parsed: %v", r)}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return emptyFile()
	case err != nil:
		return translateError(err, data)
	case len(first.Content) != 1:
		return emptyFile()
	}
	d.root = first.Content[0]
	if isNull(d.root) && d.root.Anchor == "" {
		return emptyFile()
	}
	// Further documents would be ignored silently: "---" is easily typed.
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return translateError(err, data)
	}
	return &Error{Line: second.Line, Column: second.Column, Detail: `a second document starts here; a file holds one: remove the "---"`}
}

func emptyFile() *Error { return &Error{Line: 1, Column: 1, Detail: "is empty"} }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// rejectNode records a mistake about n, which Decode then passes over.
func (d *Document) rejectNode(n *yaml.Node, format string, args ...any) {
	d.rejected[n] = true
	d.addError(n.Line, n.Column, format, args...)
}

// checkNode refuses the parts of YAML that are not for configuration files, in n
// and below. It never follows an alias.
func (d *Document) checkNode(n *yaml.Node, depth int) {
	if depth > MaxDepth {
		d.rejectNode(n, "nests deeper than %d levels", MaxDepth)
		return
	}
	d.checkProperties(n)
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			d.checkNode(item, depth+1)
		}
	case yaml.MappingNode:
		d.checkKeys(n)
		for _, value := range mappingPairs(n) {
			d.checkNode(value, depth+1)
		}
	}
}

// checkProperties refuses what may stand before a value, or in its place.
func (d *Document) checkProperties(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.rejectNode(n, "aliases (*%s) are not supported; write the value out", shortenText(n.Value))
	case n.Anchor != "":
		d.rejectNode(n, "anchors (&%s) are not supported; remove it", shortenText(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		d.rejectNode(n, "tags (%s) are not supported; remove it", shortenText(n.Tag))
	}
}

// checkKeys wants every key of a mapping to be text and there only once.
func (d *Document) checkKeys(n *yaml.Node) {
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for key := range mappingPairs(n) {
		d.checkProperties(key)
		switch {
		case d.rejected[key]:
		case key.Kind != yaml.ScalarNode:
			d.rejectNode(key, "a key must be a word, not %s", describeNode(key))
		case key.Tag == "!!merge":
			d.rejectNode(key, "merge keys (<<) are not supported; write the keys out")
		case key.Tag != "!!str":
			d.rejectNode(key, "a key must be text, got %s; quote it: %q", describeNode(key), shortenText(key.Value))
		case seen[key.Value] != nil:
			d.rejectNode(key, "duplicate key %q; it is also on line %d", shortenText(key.Value), seen[key.Value].Line)
		default:
			seen[key.Value] = key
		}
	}
}

// mappingPairs walks the keys and values of a mapping.
func mappingPairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}
