package strictjson

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// quickCheck reports whether a value certainly meets its tags. If it returns false, the
// validator decides, and describes the violations. It is nil if there is nothing to
// check.
//
// Most values are valid, and the validator copies each field to the heap to find that
// out: ten times the cost of this check.
type quickCheck func(v reflect.Value) bool

func undecided(reflect.Value) bool { return false }

// quickChecks caches quickCheckOf by type.
var quickChecks sync.Map // reflect.Type → quickCheck

func quickCheckOf(t reflect.Type) quickCheck {
	if check, ok := quickChecks.Load(t); ok {
		return check.(quickCheck)
	}
	check := quickCheckBuilder{}.checkType(t)
	quickChecks.Store(t, check)
	return check
}

// quickCheckBuilder contains the types under construction: a recursive type is undecided.
type quickCheckBuilder map[reflect.Type]bool

// checkType returns the check of a value without a tag of its own.
func (b quickCheckBuilder) checkType(t reflect.Type) quickCheck {
	switch t.Kind() {
	case reflect.Interface:
		return reflect.Value.IsNil
	case reflect.Pointer:
		if inner := b.checkType(t.Elem()); inner != nil {
			return func(v reflect.Value) bool { return v.IsNil() || inner(v.Elem()) }
		}
	case reflect.Struct:
		return b.checkStruct(t)
	}
	return nil
}

func (b quickCheckBuilder) checkStruct(t reflect.Type) quickCheck {
	if b[t] {
		return undecided
	}
	b[t] = true
	defer delete(b, t)
	type field struct {
		index int
		check quickCheck
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		if check := b.checkTagged(f.Type, f.Tag.Get("validate")); check != nil {
			fields = append(fields, field{i, check})
		}
	}
	if fields == nil {
		return nil
	}
	return func(v reflect.Value) bool {
		for i := range fields {
			if !fields[i].check(v.Field(fields[i].index)) {
				return false
			}
		}
		return true
	}
}

// checkTagged returns the check of a value with a tag.
func (b quickCheckBuilder) checkTagged(t reflect.Type, tag string) quickCheck {
	if tag == "" {
		return b.checkType(t)
	}
	rule, rest, _ := strings.Cut(tag, ",")
	name, param, _ := strings.Cut(rule, "=")
	if name == "dive" && t.Kind() == reflect.Slice {
		element := b.checkTagged(t.Elem(), rest)
		if element == nil {
			return nil
		}
		return func(v reflect.Value) bool {
			for i := range v.Len() {
				if !element(v.Index(i)) {
					return false
				}
			}
			return true
		}
	}
	if t.Kind() == reflect.Pointer {
		optional := name == "omitempty"
		if optional { // a pointer to a zero value is a value
			tag = rest
		}
		inner := b.checkTagged(t.Elem(), tag)
		return func(v reflect.Value) bool {
			if v.IsNil() {
				return optional
			}
			return inner == nil || inner(v.Elem())
		}
	}
	next := b.checkTagged(t, rest)
	if name == "omitempty" {
		return func(v reflect.Value) bool { return v.IsZero() || next == nil || next(v) }
	}
	met := checkRule(t.Kind(), name, param)
	return func(v reflect.Value) bool { return met(v) && (next == nil || next(v)) }
}

// checkRule returns the check of one rule.
func checkRule(kind reflect.Kind, name, param string) quickCheck {
	bound, err := strconv.ParseInt(param, 10, 64)
	switch {
	case name == "required" && kind != reflect.Struct:
		return func(v reflect.Value) bool { return !v.IsZero() }
	case name == "oneof" && kind == reflect.String && !strings.Contains(param, "'"):
		values := strings.Fields(param)
		return func(v reflect.Value) bool { return slices.Contains(values, v.String()) }
	case err == nil && name == "max":
		return func(v reflect.Value) bool { n, ok := measure(v); return ok && n <= bound }
	case err == nil && name == "min":
		return func(v reflect.Value) bool { n, ok := measure(v); return ok && n >= bound }
	}
	return undecided
}

// measure returns what a bound applies to: the value of a number, and the number of
// characters or entries of others.
func measure(v reflect.Value) (n int64, ok bool) {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return v.Int(), true
	case reflect.String:
		return int64(utf8.RuneCountInString(v.String())), true
	case reflect.Slice, reflect.Map:
		return int64(v.Len()), true
	}
	return 0, false
}
