package agentkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a document.
const maxDepth = 256

// decodeStrict decodes one JSON object into the struct v points at. It rejects
// documents that different parsers read differently and that encoding/json
// accepts: a duplicate name, a known name in another case ("AUD"), invalid UTF-8,
// trailing text. Unknown names are ignored.
func decodeStrict(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("invalid UTF-8")
	}
	if err := checkNames(data, fieldNames(v)); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// fieldNames returns the JSON names of the struct v points at.
func fieldNames(v any) []string {
	t := reflect.TypeOf(v).Elem()
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// checkNames rejects duplicate names in every object of data, which must be one
// object, and in the outermost one known names in another case.
func checkNames(data []byte, known []string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // the tokens are not used, so that their range does not matter
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	// One set of names for each open object, nil for an open array.
	open := []map[string]bool{{}}
	for len(open) > 0 {
		names := open[len(open)-1]
		token, err := d.Token()
		if err != nil {
			return errors.New("not valid JSON")
		}
		if name, isName := token.(string); isName && names != nil {
			if names[name] {
				return fmt.Errorf("duplicate name %.40q", name)
			}
			if len(open) == 1 && !hasExactCase(name, known) {
				return fmt.Errorf("the name %.40q differs from a known one only by case", name)
			}
			names[name] = true
			if token, err = d.Token(); err != nil { // its value
				return errors.New("not valid JSON")
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > maxDepth {
			return errors.New("nested too deep")
		}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("trailing text")
	}
	return nil
}

// hasExactCase returns false for a known name in another case, which encoding/json
// would accept as that name.
func hasExactCase(name string, known []string) bool {
	for _, k := range known {
		if name != k && strings.EqualFold(name, k) {
			return false
		}
	}
	return true
}
