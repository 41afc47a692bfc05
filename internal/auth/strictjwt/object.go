package strictjwt

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// jsonObject is a JSON object from outside: its members by name, each valid JSON.
type jsonObject map[string]json.RawMessage

// parseObject decodes exactly one object. It rejects duplicate names and names
// that differ from each other, or from a known one, only in case, because two
// parsers could choose different ones.
func parseObject(data []byte, known ...string) (jsonObject, error) {
	var o jsonObject
	if err := strictjson.UnmarshalAllowUnknown(data, &o); err != nil || o == nil {
		return nil, errors.New("not one JSON object with each name once")
	}
	simple := true
	for name := range o {
		for _, k := range known {
			if name != k && strings.EqualFold(name, k) {
				return nil, errOtherCase
			}
		}
		simple = simple && !strings.ContainsFunc(name, hasCase)
	}
	if simple { // the common case
		return o, nil
	}
	folded := make(map[string]bool, len(o))
	for name := range o {
		f := foldName(name)
		if folded[f] {
			return nil, errOtherCase
		}
		folded[f] = true
	}
	return o, nil
}

var errOtherCase = errors.New("a JSON object with names that differ only by case, or from a known one")

// hasCase reports whether r may differ in case from another character. If two
// names have no such characters, they are equal only if their bytes are equal.
func hasCase(r rune) bool { return 'A' <= r && r <= 'Z' || r > unicode.MaxASCII }

// foldName returns the same string for two names if strings.EqualFold reports that
// they are equal.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// stringMember returns a member that is a string, "" if it is absent. null is not
// a string.
func (o jsonObject) stringMember(name string) (string, error) {
	raw, ok := o[name]
	if !ok {
		return "", nil
	}
	var s string
	err := strictjson.Unmarshal(raw, &s)
	return s, err
}
