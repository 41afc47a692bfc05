package responsejson

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// encoder appends JSON. After an error the text is not valid.
type encoder struct {
	out []byte
	err error
}

var errNotFinite = errors.New("a number is not finite")

// name appends the name of the next member. It must be ASCII without quotes.
func (e *encoder) name(name string) {
	if e.out[len(e.out)-1] != '{' {
		e.out = append(e.out, ',')
	}
	e.out = append(e.out, '"')
	e.out = append(e.out, name...)
	e.out = append(e.out, '"', ':')
}

func (e *encoder) string(s string) {
	// The error reports invalid UTF-8, which is replaced by U+FFFD.
	e.out, _ = jsontext.AppendQuote(e.out, s)
}

func (e *encoder) stringMember(name, s string) {
	e.name(name)
	e.string(s)
}

// optionalString appends the member unless it is empty.
func (e *encoder) optionalString(name, s string) {
	if s != "" {
		e.stringMember(name, s)
	}
}

// float appends a number as ECMAScript does (RFC 8785, section 3.2.2.3).
func (e *encoder) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.err = errors.Join(e.err, errNotFinite)
		return
	}
	if f == 0 {
		f = math.Copysign(0, f) // −0 stays −0
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	e.out = strconv.AppendFloat(e.out, f, format, -1, 64)
	if n := len(e.out); format == 'e' && n >= 4 && e.out[n-4] == 'e' && e.out[n-2] == '0' { // e-09
		e.out[n-2] = e.out[n-1]
		e.out = e.out[:n-1]
	}
}

func (e *encoder) floatMember(name string, f float64) {
	e.name(name)
	e.float(f)
}

func (e *encoder) intMember(name string, n int) {
	e.name(name)
	e.out = strconv.AppendInt(e.out, int64(n), 10)
}

func (e *encoder) boolMember(name string, b bool) {
	e.name(name)
	e.out = strconv.AppendBool(e.out, b)
}

// optionalTrue appends the member if it is true.
func (e *encoder) optionalTrue(name string, b bool) {
	if b {
		e.boolMember(name, b)
	}
}

func (e *encoder) optionalFloat(name string, f float64) {
	if f != 0 {
		e.floatMember(name, f)
	}
}

func (e *encoder) stringsMember(name string, list []string) {
	e.name(name)
	e.out = append(e.out, '[')
	for i, s := range list {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.string(s)
	}
	e.out = append(e.out, ']')
}

func (e *encoder) optionalStrings(name string, list []string) {
	if len(list) > 0 {
		e.stringsMember(name, list)
	}
}

// valueMember appends a rare member by reflection.
func (e *encoder) valueMember(name string, v any) {
	e.name(name)
	data, err := strictjson.Marshal(v)
	e.err = errors.Join(e.err, err)
	e.out = append(e.out, data...)
}

// floatsMember appends numbers by their names, in the order of these.
func (e *encoder) floatsMember(name string, numbers map[string]float64) {
	e.name(name)
	e.out = append(e.out, '{')
	var space [16]string
	for _, key := range sortedKeys(numbers, space[:0]) {
		e.key(key)
		e.float(numbers[key])
	}
	e.out = append(e.out, '}')
}

// rawMember appends values that are JSON already by their names, in the order of these.
func (e *encoder) rawMember(name string, values map[string]json.RawMessage) {
	e.name(name)
	e.out = append(e.out, '{')
	var space [16]string
	for _, key := range sortedKeys(values, space[:0]) {
		e.key(key)
		if values[key] == nil {
			e.out = append(e.out, "null"...)
			continue
		}
		var err error
		e.out, err = jsontext.AppendFormat(e.out, values[key], jsontext.AllowInvalidUTF8(true))
		e.err = errors.Join(e.err, err)
	}
	e.out = append(e.out, '}')
}

// sortedKeys appends the keys to keys, which saves an allocation, in their order.
func sortedKeys[V any](m map[string]V, keys []string) []string {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// key appends the name of the next member, which may be any text.
func (e *encoder) key(name string) {
	if e.out[len(e.out)-1] != '{' {
		e.out = append(e.out, ',')
	}
	e.string(name)
	e.out = append(e.out, ':')
}

// appendArray appends a list. nil is [].
func appendArray[T any](e *encoder, list []T, appendOne func(*encoder, *T)) {
	e.out = append(e.out, '[')
	for i := range list {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		appendOne(e, &list[i])
	}
	e.out = append(e.out, ']')
}

func arrayMember[T any](e *encoder, name string, list []T, appendOne func(*encoder, *T)) {
	e.name(name)
	appendArray(e, list, appendOne)
}

func optionalArray[T any](e *encoder, name string, list []T, appendOne func(*encoder, *T)) {
	if len(list) > 0 {
		arrayMember(e, name, list, appendOne)
	}
}
