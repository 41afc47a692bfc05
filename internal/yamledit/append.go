package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Item is a new item of a list. A single line is a scalar in flow style, for example
// of Quote. Several lines are the pairs of a mapping, "key: value", with values in
// flow style.
type Item []string

// String returns the item in flow style.
func (i Item) String() string {
	if len(i) == 1 {
		return i[0]
	}
	return "{ " + strings.Join(i, ", ") + " }"
}

// errNotUnderstood is the error for a text that Append cannot change safely.
var errNotUnderstood = errors.New("its YAML is too unusual to be changed by a program: add the entry with an editor")

// Append returns the text with the item at the end of the list at the path. Keys of the
// path that are missing are added, the first ones also to an empty text.
func Append(text []byte, path []string, item Item) ([]byte, error) {
	doc, err := parse(text)
	if err != nil {
		return nil, err
	}
	e := newEditor(text)
	changed, err := e.append(doc, path, item)
	if err != nil {
		return nil, err
	}
	if err := checkAppended(text, changed, path, item); err != nil {
		return nil, err
	}
	return changed, nil
}

// Has reports whether the text has a value at the path.
func Has(text []byte, path ...string) bool {
	doc, err := parse(text)
	if err != nil || len(doc.Content) == 0 {
		return false
	}
	_, _, rest := follow(doc.Content[0], path)
	return len(rest) == 0
}

// parse recovers from panics, because the library panics on some invalid input.
func parse(text []byte) (doc *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be parsed: %v", r)
		}
	}()
	doc = new(yaml.Node)
	return doc, yaml.Unmarshal(text, doc)
}

// checkAppended reports whether the values of the text are the old ones and the item.
func checkAppended(text, changed []byte, path []string, item Item) error {
	var before, after, added any
	if err := yaml.Unmarshal(text, &before); err != nil {
		return err
	}
	if err := yaml.Unmarshal([]byte(item.String()), &added); err != nil {
		return fmt.Errorf("new item %s: %w", item, err)
	}
	if yaml.Unmarshal(changed, &after) != nil || !reflect.DeepEqual(appendValue(before, path, added), after) {
		return errNotUnderstood
	}
	return nil
}

func appendValue(at any, path []string, item any) any {
	if len(path) == 0 {
		list, _ := at.([]any)
		return append(list, item)
	}
	m, ok := at.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	m[path[0]] = appendValue(m[path[0]], path[1:], item)
	return m
}

// follow follows the path as far as it exists, and returns the last key (nil for the
// root), its value, and the rest of the path.
func follow(root *yaml.Node, path []string) (key, value *yaml.Node, rest []string) {
	value, rest = root, path
	for len(rest) > 0 && value.Kind == yaml.MappingNode {
		i := 0
		for i < len(value.Content) && value.Content[i].Value != rest[0] {
			i += 2
		}
		if i >= len(value.Content) {
			break
		}
		key, value, rest = value.Content[i], value.Content[i+1], rest[1:]
	}
	return key, value, rest
}

// maxLine is the number of columns beyond which an item of a flow list gets a line of
// its own.
const maxLine = 120

// editor inserts into one text.
type editor struct {
	text    []byte
	lines   []int // offset of each line
	newline string
}

func newEditor(text []byte) *editor {
	e := &editor{text: text, newline: "\n", lines: []int{0}}
	if bytes.Contains(text, []byte("\r\n")) {
		e.newline = "\r\n"
	}
	for i, c := range text {
		if c == '\n' && i+1 < len(text) {
			e.lines = append(e.lines, i+1)
		}
	}
	return e
}

func (e *editor) append(doc *yaml.Node, path []string, item Item) ([]byte, error) {
	if len(doc.Content) == 0 {
		return e.insertLines(len(e.lines), newBlock(0, path, item)), nil
	}
	root := doc.Content[0]
	key, value, rest := follow(root, path)
	flow := value.Style&yaml.FlowStyle != 0
	isList := value.Kind == yaml.SequenceNode && len(rest) == 0
	isMapping := value.Kind == yaml.MappingNode && len(rest) > 0
	isEmpty := value.Kind == yaml.ScalarNode && value.Tag == "!!null" && value.Value == ""
	switch {
	case isEmpty && key != nil:
		return e.insertLines(key.Line, newBlock(key.Column+1, rest, item)), nil
	case isList && flow && len(value.Content) == 0 && key != nil && e.startsLine(key):
		return e.replaceEmptyList(key, value, item)
	case isList && flow:
		return e.insertFlow(value, item.String())
	case isMapping && flow:
		return e.insertFlow(value, newFlow(rest, item))
	case isList:
		lines := newBlock(value.Column-1, nil, item)
		if last := value.Content[len(value.Content)-1]; len(value.Content) > 1 && last.Line > 1 && len(bytes.TrimSpace(e.line(last.Line-1))) == 0 {
			lines = append([]string{""}, lines...) // as between the other items
		}
		return e.insertLines(e.lastLine(root, value), lines), nil
	case isMapping:
		return e.insertLines(e.lastLine(root, value), newBlock(value.Column-1, rest, item)), nil
	}
	return nil, fmt.Errorf("line %d: %w", value.Line, errNotUnderstood)
}

// newBlock returns the lines of the item in block style below the keys.
func newBlock(column int, keys []string, item Item) []string {
	var lines []string
	for _, key := range keys {
		lines = append(lines, strings.Repeat(" ", column)+Key(key)+":")
		column += 2
	}
	for i, line := range item {
		mark := "- "
		if i > 0 {
			mark = "  "
		}
		lines = append(lines, strings.Repeat(" ", column)+mark+line)
	}
	return lines
}

// newFlow returns the item in flow style below the keys.
func newFlow(keys []string, item Item) string {
	text := "[" + item.String() + "]"
	for _, key := range slices.Backward(keys[1:]) {
		text = "{ " + Key(key) + ": " + text + " }"
	}
	return Key(keys[0]) + ": " + text
}

// insertLines inserts lines after a line, counted from 1.
func (e *editor) insertLines(line int, lines []string) []byte {
	at, before := len(e.text), ""
	if line < len(e.lines) {
		at = e.lines[line]
	} else if at > 0 && e.text[at-1] != '\n' {
		before = e.newline
	}
	return e.insert(at, before+strings.Join(lines, e.newline)+e.newline)
}

func (e *editor) insert(at int, text string) []byte {
	return slices.Concat(e.text[:at], []byte(text), e.text[at:])
}

// lastLine returns the last line of a value in block style, without the empty lines and
// comments behind it.
func (e *editor) lastLine(root, value *yaml.Node) int {
	line := len(e.lines)
	if next := nodeAfter(root, value); next != nil {
		line = next.Line - 1
	}
	for line > value.Line {
		text := bytes.TrimSpace(e.line(line))
		if len(text) > 0 && text[0] != '#' && !bytes.Equal(text, []byte("...")) {
			break
		}
		line--
	}
	return line
}

func (e *editor) line(number int) []byte {
	end := len(e.text)
	if number < len(e.lines) {
		end = e.lines[number]
	}
	return e.text[e.lines[number-1]:end]
}

// startsLine reports whether the node is the first in its line, so that it is in block
// style.
func (e *editor) startsLine(n *yaml.Node) bool {
	at, ok := e.offset(n)
	return ok && len(bytes.TrimSpace(e.text[e.lines[n.Line-1]:at])) == 0
}

// offset returns the offset of a node. Columns count characters.
func (e *editor) offset(n *yaml.Node) (int, bool) {
	if n.Line < 1 || n.Line > len(e.lines) {
		return 0, false
	}
	line, column := e.line(n.Line), 1
	for i := range string(line) {
		if column == n.Column {
			return e.lines[n.Line-1] + i, true
		}
		column++
	}
	return 0, false
}

// nodeAfter returns the first node behind value and all of its parts, or nil.
func nodeAfter(root, value *yaml.Node) *yaml.Node {
	passed := false
	var walk func(n *yaml.Node) *yaml.Node
	walk = func(n *yaml.Node) *yaml.Node {
		if passed {
			return n
		}
		if n == value {
			passed = true
			return nil
		}
		for _, child := range n.Content {
			if found := walk(child); found != nil {
				return found
			}
		}
		return nil
	}
	return walk(root)
}
