package golden

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// topLevelKey matches a key in the first column of a YAML file.
var topLevelKey = regexp.MustCompile(`(?m)^["']?(\w[\w.-]*)["']?:(?:\s|$)`)

// otherKind returns why the file is not a case file but valid content of another
// kind, such as a registry, or "". A name that is probably misspelt counts as
// the name, so that its file is an error.
func otherKind(file string, data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch strings.ToLower(filepath.Ext(file)) {
	case ".yaml", ".yml":
		var keys []string
		for _, m := range topLevelKey.FindAllSubmatch(data, -1) {
			keys = append(keys, string(m[1]))
		}
		if lacksAll(keys, "cases") {
			return "it has no key cases"
		}
	case ".jsonl":
		line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
		members := map[string]any{}
		if strictjson.Unmarshal(line, &members) != nil {
			return ""
		}
		var names []string
		for name := range members {
			names = append(names, name)
		}
		if lacksAll(names, "id", "input", "expect") {
			return "its lines have no member input"
		}
	case ".csv":
		header, _, _ := strings.Cut(string(data), "\n")
		columns := strings.FieldsFunc(header, func(r rune) bool { return strings.ContainsRune(",;\t \"\r", r) })
		if lacksAll(columns, "input", "expected_agent") {
			return "its header has no column input"
		}
	}
	return ""
}

// lacksAll reports whether there are names, and none is nearly one of the wanted.
func lacksAll(names []string, wanted ...string) bool {
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return strictyaml.Nearest(name, wanted) != "" })
}
