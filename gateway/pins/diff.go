package pins

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Limits of what Diff shows.
const (
	maxDiffLines = 200
	maxDiffValue = 500 // bytes of one value
)

// Diff returns the values that differ between two definitions, one a line: "- " with the
// old value and "+ " with the new one, each after its JSON pointer. Characters that are
// invisible are escaped. An empty old definition means that there was none.
func Diff(old, current json.RawMessage) []string {
	before, after := flatten(old), flatten(current)
	paths := map[string]bool{}
	for path := range before {
		paths[path] = true
	}
	for path := range after {
		paths[path] = true
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, existed := before[path]
		is, exists := after[path]
		if existed && exists && was == is {
			continue
		}
		if len(lines) >= maxDiffLines {
			return append(lines, "…")
		}
		if existed {
			lines = append(lines, fmt.Sprintf("- %s: %s", path, shorten(was)))
		}
		if exists {
			lines = append(lines, fmt.Sprintf("+ %s: %s", path, shorten(is)))
		}
	}
	return lines
}

func shorten(s string) string {
	if len(s) <= maxDiffValue {
		return s
	}
	cut := maxDiffValue
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// flatten returns the scalar values of a document by JSON pointer, as they are shown.
func flatten(raw json.RawMessage) map[string]string {
	values := map[string]string{}
	visit(raw, func(path string, v any) { values[path] = format(v) })
	return values
}

func format(v any) string {
	if text, ok := v.(string); ok {
		return strconv.Quote(text) // escapes what cannot be seen
	}
	return fmt.Sprint(v)
}

// visit calls fn with the scalar values of a document, and with its empty arrays and
// objects.
func visit(raw json.RawMessage, fn func(path string, v any)) {
	var document any
	if strictjson.Unmarshal(raw, &document) != nil {
		return // there is no definition
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if len(v) == 0 {
				fn(path, "{}")
			}
			for name, item := range v {
				walk(strictjson.AppendPointer(path, quoteInvisible(name)), item)
			}
		case []any:
			if len(v) == 0 {
				fn(path, "[]")
			}
			for i, item := range v {
				walk(path+"/"+strconv.Itoa(i), item)
			}
		default:
			fn(path, v)
		}
	}
	walk("", document)
}

// quoteInvisible returns the name without characters that cannot be seen.
func quoteInvisible(name string) string {
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}
