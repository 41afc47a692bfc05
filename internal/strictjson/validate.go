package strictjson

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"

	"github.com/caprouter/caprouter/contract"
)

// embeddedName stands for an embedded struct in the validator's field paths: its
// members belong to the object around it, so the pointer skips it.
const embeddedName = "<embedded>"

var structValidator = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, embedded := memberName(f)
		if embedded {
			return embeddedName
		}
		return name
	})
	return v
})

// Validate checks the `validate` tags of the struct v (or what it points at) and
// returns what is wrong, in the order of the fields; nil when all is well.
func Validate(v any) []contract.ErrorDetail {
	err := structValidator().Struct(v)
	if err == nil {
		return nil
	}
	fields, ok := errors.AsType[validator.ValidationErrors](err)
	if !ok { // v is no struct: nothing was checked, so nothing passes
		return []contract.ErrorDetail{{Detail: "cannot be checked: " + err.Error()}}
	}
	details := make([]contract.ErrorDetail, len(fields))
	for i, f := range fields {
		details[i] = contract.ErrorDetail{Pointer: fieldPointer(f.Namespace()), Detail: describeRule(f)}
	}
	return details
}

// fieldPointer turns the validator's path "Request.history[3].role" into the JSON
// pointer "/history/3/role". Member names hold neither dots nor brackets; a map
// key that does is cut there.
func fieldPointer(namespace string) string {
	_, path, _ := strings.Cut(namespace, ".") // the name of the Go type
	var p jsontext.Pointer
	for token := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		if token != embeddedName {
			p = p.AppendToken(token)
		}
	}
	return clipPointer(p)
}

// describeRule says what the value must be.
func describeRule(f validator.FieldError) string {
	switch f.Tag() {
	case "required":
		return "is required"
	case "oneof":
		return "must be one of " + strings.Join(strings.Fields(f.Param()), ", ")
	case "max", "lte":
		return "must " + describeBound(f, "at most")
	case "min", "gte":
		return "must " + describeBound(f, "at least")
	case "len":
		return "must " + describeBound(f, "exactly")
	}
	if f.Param() == "" {
		return "does not meet the rule " + f.Tag()
	}
	return fmt.Sprintf("does not meet the rule %s=%s", f.Tag(), f.Param())
}

// describeBound words a bound by what the validator measures of such a value.
func describeBound(f validator.FieldError, bound string) string {
	switch f.Kind() {
	case reflect.String:
		return fmt.Sprintf("be %s %s characters long", bound, f.Param())
	case reflect.Slice, reflect.Array, reflect.Map:
		return fmt.Sprintf("have %s %s entries", bound, f.Param())
	}
	return fmt.Sprintf("be %s %s", bound, f.Param())
}
