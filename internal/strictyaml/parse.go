package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"gopkg.in/yaml.v3"
)

// Limits of a file.
const (
	MaxBytes = 64 << 20
	MaxDepth = 64 // nesting of lists and mappings
)

// Document is one parsed file: its values with their positions, and the errors found
// so far. It is owned by one goroutine.
type Document struct {
	errorList

	root     *yaml.Node
	rejected map[*yaml.Node]bool           // keys and values that checkNode rejects
	invalid  map[*yaml.Node]bool           // values with an error in them
	index    map[*yaml.Node]map[string]int // of mappings: key → index in Content
}

// Parse parses data as one YAML document and makes all checks that do not depend on
// the target of Decode. file is the name of the source in errors.
//
// If data is not one YAML document, the error is Errors. Other errors (aliases, tags,
// duplicate keys) are reported by the Document, together with those of Decode.
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

// Err returns the errors found so far as Errors, or nil.
func (d *Document) Err() error { return d.sorted() }

// parseNodes parses data into the root node. It recovers from panics, because the
// library panics on some invalid input.
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
	// Reject further documents, because they would be ignored silently.
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

// rejectNode adds an error about n, which Decode then skips.
func (d *Document) rejectNode(n *yaml.Node, format string, args ...any) {
	d.rejected[n] = true
	d.addError(n.Line, n.Column, format, args...)
}

// checkNode rejects the unsupported parts of YAML in n and below. It never follows
// an alias.
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

// checkProperties rejects aliases, anchors and tags.
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

// checkKeys rejects keys of a mapping that are not text or duplicate.
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

// mappingPairs iterates over the keys and values of a mapping.
func mappingPairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}
