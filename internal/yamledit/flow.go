package yamledit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// insertFlow inserts an item at the end of a collection in flow style.
func (e *editor) insertFlow(value *yaml.Node, item string) ([]byte, error) {
	open, ok := e.offset(value)
	if !ok {
		return nil, errNotUnderstood
	}
	end, _, ok := e.scanFlow(open)
	if !ok {
		return nil, fmt.Errorf("line %d: %w", value.Line, errNotUnderstood)
	}
	if len(value.Content) == 0 {
		return e.insert(end, item), nil
	}
	separator := ", "
	if e.text[end-1] == ',' {
		separator = " "
	}
	lineStart := strings.LastIndexByte(string(e.text[:end]), '\n') + 1
	if utf8.RuneCount(e.text[lineStart:end])+utf8.RuneCountInString(separator+item)+2 > maxLine {
		separator = strings.TrimSpace(separator) + e.newline + strings.Repeat(" ", value.Content[0].Column-1)
	}
	return e.insert(end, separator+item), nil
}

// replaceEmptyList replaces the list "[]" of a key by one in block style.
func (e *editor) replaceEmptyList(key, value *yaml.Node, item Item) ([]byte, error) {
	open, ok := e.offset(value)
	if !ok || value.Line != key.Line {
		return nil, errNotUnderstood
	}
	_, closing, ok := e.scanFlow(open)
	if !ok {
		return nil, errNotUnderstood
	}
	before := strings.TrimRight(string(e.text[:open]), " ")
	without := newEditor([]byte(before + string(e.text[closing+1:])))
	return without.insertLines(key.Line, newBlock(key.Column+1, nil, item)), nil
}

// scanFlow returns the end of the content of a collection in flow style, without the
// comments behind it, and the place of its closing bracket.
func (e *editor) scanFlow(open int) (end, closing int, ok bool) {
	depth, tokenStarts := 0, true
	for i := open; i < len(e.text); i++ {
		switch c := e.text[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c == '#' && isBlank(e.text[i-1]):
			for i+1 < len(e.text) && e.text[i+1] != '\n' {
				i++
			}
			continue
		case (c == '"' || c == '\'') && tokenStarts:
			if i = e.skipQuoted(i); i < 0 {
				return 0, 0, false
			}
			tokenStarts = false
		case c == '[' || c == '{':
			depth++
			tokenStarts = true
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return end, i, true
			}
			tokenStarts = false
		default:
			tokenStarts = c == ',' || c == ':'
		}
		end = i + 1
	}
	return 0, 0, false
}

// skipQuoted returns the place of the closing quote, or -1.
func (e *editor) skipQuoted(open int) int {
	quote := e.text[open]
	for i := open + 1; i < len(e.text); i++ {
		switch {
		case quote == '"' && e.text[i] == '\\':
			i++
		case e.text[i] != quote:
		case quote == '\'' && i+1 < len(e.text) && e.text[i+1] == quote:
			i++
		default:
			return i
		}
	}
	return -1
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }
