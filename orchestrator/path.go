package orchestrator

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// path selects a value in a JSON document: names of members and indexes of elements.
type path []string

var pathPart = regexp.MustCompile(`^(?:\.([A-Za-z0-9_-]+)|\[([0-9]{1,9})\]|\['([^']*)'\])`)

// parsePath parses .name, [0] and ['a name'] in any order.
func parsePath(text string) (path, error) {
	var p path
	for text != "" {
		m := pathPart.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%.40q is not of the form .name, [0] or ['a name']", text)
		}
		p = append(p, m[1]+m[2]+m[3])
		text = text[len(m[0]):]
	}
	return p, nil
}

// parseJSONPath parses a path that begins with $.
func parseJSONPath(text string) (path, error) {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return nil, fmt.Errorf("must begin with $, for example $.items[0].name")
	}
	return parsePath(rest)
}

// find returns the value at the path, false if there is none.
func (p path) find(doc json.RawMessage) (json.RawMessage, bool) {
	for _, part := range p {
		switch kindOf(doc) {
		case '{':
			var members map[string]json.RawMessage
			if strictjson.Unmarshal(doc, &members) != nil {
				return nil, false
			}
			value, ok := members[part]
			if !ok {
				return nil, false
			}
			doc = value
		case '[':
			var elements []json.RawMessage
			i, err := strconv.Atoi(part)
			if err != nil || strictjson.Unmarshal(doc, &elements) != nil || i < 0 || i >= len(elements) {
				return nil, false
			}
			doc = elements[i]
		default:
			return nil, false
		}
	}
	return doc, len(doc) > 0
}

// kindOf returns the first byte of a JSON value, 0 if there is none.
func kindOf(doc json.RawMessage) byte {
	text := strings.TrimLeft(string(doc[:min(len(doc), 64)]), " \t\r\n")
	if text == "" {
		return 0
	}
	return text[0]
}

// referenceStart is the beginning of a reference to the output of a step, also of one that is
// misspelt.
var referenceStart = regexp.MustCompile(`(?i)\$\{steps?\.`)

var referencePattern = regexp.MustCompile(`\$\{steps\.([A-Za-z0-9_-]{1,64})\.output((?:\.[A-Za-z0-9_-]+|\[[0-9]{1,9}\]|\['[^'}]*'\])*)\}`)

// reference is one reference in a string.
type reference struct {
	step       string
	path       path
	start, end int // in the string
}

// findReferences returns the references in a string. A string with an incomplete or misspelt
// reference is an error; other texts, such as ${HOME}, are not references.
func findReferences(text string) ([]reference, error) {
	var refs []reference
	for _, m := range referencePattern.FindAllStringSubmatchIndex(text, -1) {
		p, err := parsePath(text[m[4]:m[5]])
		if err != nil {
			return nil, err
		}
		refs = append(refs, reference{step: text[m[2]:m[3]], path: p, start: m[0], end: m[1]})
	}
	if len(referenceStart.FindAllStringIndex(text, -1)) != len(refs) {
		return nil, fmt.Errorf("a reference must have the form ${steps.ID.output}, or ${steps.ID.output.PATH}")
	}
	return refs, nil
}

// walkStrings replaces every string in a JSON value by what fn returns for it. Names of
// members are not strings in this sense.
func walkStrings(doc json.RawMessage, pointer string, fn func(text, pointer string) (json.RawMessage, error)) (json.RawMessage, error) {
	switch kindOf(doc) {
	case '{':
		var members map[string]json.RawMessage
		if err := strictjson.Unmarshal(doc, &members); err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(members)) { // so that mistakes have an order
			replaced, err := walkStrings(members[name], strictjson.AppendPointer(pointer, name), fn)
			if err != nil {
				return nil, err
			}
			members[name] = replaced
		}
		return strictjson.Marshal(members)
	case '[':
		var elements []json.RawMessage
		if err := strictjson.Unmarshal(doc, &elements); err != nil {
			return nil, err
		}
		for i, value := range elements {
			replaced, err := walkStrings(value, pointer+"/"+strconv.Itoa(i), fn)
			if err != nil {
				return nil, err
			}
			elements[i] = replaced
		}
		return strictjson.Marshal(elements)
	case '"':
		var text string
		if err := strictjson.Unmarshal(doc, &text); err != nil {
			return nil, err
		}
		return fn(text, pointer)
	}
	return doc, nil
}

// referencesOf returns the steps that the arguments refer to, each with the pointers of
// its references, and the mistakes in references.
func referencesOf(arguments json.RawMessage, pointer string) (map[string][]string, []contract.ErrorDetail) {
	steps := map[string][]string{}
	var mistakes []contract.ErrorDetail
	_, err := walkStrings(arguments, pointer, func(text, at string) (json.RawMessage, error) {
		refs, err := findReferences(text)
		if err != nil {
			mistakes = append(mistakes, contract.ErrorDetail{Pointer: at, Detail: err.Error()})
		}
		for _, r := range refs {
			steps[r.step] = append(steps[r.step], at)
		}
		return json.RawMessage("null"), nil
	})
	if err != nil {
		mistakes = append(mistakes, contract.ErrorDetail{Pointer: pointer, Detail: err.Error()})
	}
	return steps, mistakes
}

// Limits of the references in the arguments of one call, in bytes: a short plan can refer to
// a large output thousands of times.
const (
	maxReferenced = 1 << 20  // of the values
	maxSearched   = 64 << 20 // of the outputs that are parsed to find them
)

// resolveArguments returns the arguments with the values of their references. Values are
// not searched for references again.
func resolveArguments(arguments json.RawMessage, outputs map[string]json.RawMessage) (json.RawMessage, error) {
	size, searched := 0, 0
	return walkStrings(arguments, "", func(text, at string) (json.RawMessage, error) {
		refs, err := findReferences(text)
		if err != nil {
			return nil, err
		}
		if len(refs) == 0 {
			return strictjson.Marshal(text)
		}
		var b strings.Builder
		end := 0
		for _, r := range refs {
			if searched += len(outputs[r.step]) * len(r.path); searched > maxSearched {
				return nil, &referenceError{at, fmt.Sprintf("more than %d bytes of outputs would be searched for the values of the references", maxSearched)}
			}
			value, ok := r.path.find(outputs[r.step])
			if !ok {
				return nil, &referenceError{at, "the output has no value at " + text[r.start:r.end]}
			}
			if size += len(value); size > maxReferenced {
				return nil, &referenceError{at, fmt.Sprintf("the values of the references are larger than %d bytes", maxReferenced)}
			}
			if r.start == 0 && r.end == len(text) {
				return value, nil
			}
			b.WriteString(text[end:r.start])
			b.WriteString(textOf(value))
			end = r.end
		}
		b.WriteString(text[end:])
		return strictjson.Marshal(b.String())
	})
}

// referenceError is a reference that cannot be replaced by a value.
type referenceError struct{ pointer, detail string }

func (e *referenceError) Error() string { return e.detail }

// textOf returns a string as it is, and another value as JSON.
func textOf(value json.RawMessage) string {
	var text string
	if kindOf(value) == '"' && strictjson.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// equalJSON reports whether two JSON values are equal. The order of members does not
// matter, nor how a number is written.
func equalJSON(a, b json.RawMessage) bool {
	if kindOf(a) != kindOf(b) && (isStructured(kindOf(a)) || isStructured(kindOf(b))) {
		return false
	}
	switch kindOf(a) {
	case '{':
		var x, y map[string]json.RawMessage
		if strictjson.Unmarshal(a, &x) != nil || strictjson.Unmarshal(b, &y) != nil || len(x) != len(y) {
			return false
		}
		for name, value := range x {
			other, ok := y[name]
			if !ok || !equalJSON(value, other) {
				return false
			}
		}
		return true
	case '[':
		var x, y []json.RawMessage
		if strictjson.Unmarshal(a, &x) != nil || strictjson.Unmarshal(b, &y) != nil || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equalJSON(x[i], y[i]) {
				return false
			}
		}
		return true
	case '"':
		return textOf(a) == textOf(b)
	}
	x, y := strings.TrimSpace(string(a)), strings.TrimSpace(string(b))
	if x == y {
		return true
	}
	return len(x) <= maxNumber && len(y) <= maxNumber && equalNumbers(x, y)
}

// maxNumber bounds the numbers that are compared by value, because of their exponents.
const maxNumber = 40

func equalNumbers(x, y string) bool {
	if exponentOf(x) > maxExponent || exponentOf(y) > maxExponent {
		return false
	}
	p, ok := new(big.Rat).SetString(x)
	if !ok {
		return false
	}
	q, ok := new(big.Rat).SetString(y)
	return ok && p.Cmp(q) == 0
}

const maxExponent = 400

func exponentOf(number string) int {
	_, exponent, ok := strings.Cut(strings.ToLower(number), "e")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(exponent, "+"), "-"))
	if err != nil {
		return maxExponent + 1
	}
	return n
}

func isStructured(kind byte) bool { return kind == '{' || kind == '[' || kind == '"' }
