package strictyaml

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// structKeys are the YAML keys of a struct.
type structKeys struct {
	names    []string // in the order of the fields
	field    map[string]int
	synonyms map[string]string // second name of a key to its first, and back
	below    map[string]string // keys of the mappings in the struct, to the first key that has them
}

// keysOfStruct returns the keys of struct type t and caches them for one Decode. The
// key of a field without a `yaml` tag is its name in lower case, as in the library. The
// tag `synonym:"agents"` gives a key a second name.
func (d *decoder) keysOfStruct(t reflect.Type) *structKeys {
	if k, ok := d.structs[t]; ok {
		return k
	}
	k := &structKeys{field: map[string]int{}, synonyms: map[string]string{}, below: map[string]string{}}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = strings.ToLower(f.Name)
		}
		k.names = append(k.names, name)
		k.field[name] = f.Index[0]
		if synonym := f.Tag.Get("synonym"); synonym != "" {
			k.field[synonym] = f.Index[0]
			k.synonyms[name], k.synonyms[synonym] = synonym, name
		}
		if f.Type.Kind() == reflect.Struct {
			for _, inner := range d.keysOfStruct(f.Type).names {
				if _, known := k.below[inner]; !known {
					k.below[inner] = name
				}
			}
		}
	}
	d.structs[t] = k
	return k
}

// describeUnknown returns the error text for an unknown key.
func (k *structKeys) describeUnknown(key string) string {
	if parent, ok := k.below[key]; ok {
		return fmt.Sprintf("unknown key %q; it belongs below %q", key, parent)
	}
	known := slices.Concat(k.names, slices.Sorted(maps.Keys(k.synonyms)))
	if near := Nearest(key, known); near != "" {
		return fmt.Sprintf("unknown key %q; did you mean %q?", key, near)
	}
	if near := Nearest(key, slices.Sorted(maps.Keys(k.below))); near != "" {
		return fmt.Sprintf("unknown key %q; did you mean %q below %q?", key, near, k.below[near])
	}
	return fmt.Sprintf("unknown key %q; known here: %s", shortenText(key), strings.Join(k.names, ", "))
}

// Nearest returns the name with the smallest edit distance to key, or "" if more
// than one letter and more than a third of the letters differ.
func Nearest(key string, names []string) string {
	const maxLen = 64 // bounds the cost, which is the product of the lengths
	if len(key) > maxLen {
		return ""
	}
	best, least := "", 0
	for _, name := range names {
		allowed := max(1, len(name)/3)
		if len(name) < 3 { // because all short words are similar
			allowed = 0
		}
		edits := editDistance(strings.ToLower(key), strings.ToLower(name))
		if edits <= allowed && (best == "" || edits < least) {
			best, least = name, edits
		}
	}
	return best
}

// editDistance is the optimal string alignment distance: the number of letters to
// insert, delete, replace or transpose to turn a into b.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range t {
		rows[0][j+1] = j + 1
	}
	for i := range s {
		for j := range t {
			replaced := rows[i][j]
			if s[i] != t[j] {
				replaced++
			}
			edits := min(replaced, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				edits = min(edits, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = edits
		}
	}
	return rows[len(s)][len(t)]
}
