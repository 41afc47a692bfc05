package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Numbers are decimal. Forms that YAML 1.1 and 1.2 read differently (octal,
// sexagesimal, underscores), and infinity, are rejected.
var (
	decimalInt   = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	decimalFloat = regexp.MustCompile(`^-?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

func (d *decoder) decodeScalar(n *yaml.Node, v reflect.Value) bool {
	t := v.Type()
	if n.Kind != yaml.ScalarNode {
		return d.addErrorAt(n, "must be %s, got %s", describeType(t), describeNode(n))
	}
	switch v.Kind() {
	case reflect.String:
		number := d.numberAsText[t] && n.Style == 0 && decimalFloat.MatchString(n.Value)
		if n.Tag != "!!str" && n.Tag != "!!merge" && !number { // "<<" merges as a key only
			return d.addErrorAt(n, "must be text, got %s; quote it: %q", describeNode(n), shortenText(n.Value))
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Tag != "!!bool" {
			return d.addErrorAt(n, "must be true or false, got %s", describeNode(n))
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, t.Bits())
		if !d.checkNumber(n, t, decimalInt, err) {
			return false
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		u, err := strconv.ParseUint(n.Value, 10, t.Bits())
		if !d.checkNumber(n, t, decimalInt, err) {
			return false
		}
		v.SetUint(u)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, t.Bits())
		if !d.checkNumber(n, t, decimalFloat, err) {
			return false
		}
		v.SetFloat(f)
	default:
		return d.unsupportedType(n, t)
	}
	return true
}

// checkNumber adds an error if the scalar n does not match the form, or if strconv
// returned err for it.
func (d *decoder) checkNumber(n *yaml.Node, t reflect.Type, form *regexp.Regexp, err error) bool {
	switch {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return d.addErrorAt(n, "must be %s, got %s; remove the quotes", describeType(t), describeNode(n))
	case errors.Is(err, strconv.ErrRange):
		return d.addErrorAt(n, "%s is out of range", shortenText(n.Value))
	case err != nil, n.Style != 0, !form.MatchString(n.Value):
		return d.addErrorAt(n, "must be %s in decimal, got %s", describeType(t), describeNode(n))
	}
	return true
}

// describeType describes the value that a Go type is decoded from.
func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return describeType(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0 up"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		if t.Elem().Kind() == reflect.Slice {
			return "a mapping of lists (key: [value, …])"
		}
		return "a mapping (key: value)"
	case reflect.Struct:
		return "a mapping (key: value)"
	}
	return "another value"
}

// describeNode describes the value in the file.
func describeNode(n *yaml.Node) string {
	value := shortenText(n.Value)
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "the number " + value
	case "!!bool":
		return "the boolean " + value
	case "!!timestamp":
		return "the date " + value
	case "!!null":
		return "nothing"
	}
	return fmt.Sprintf("the text %q", value)
}
