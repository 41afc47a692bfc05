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

// Required is the detail of the error about an absent value.
const Required = "is required"

// embeddedName is the name of an embedded struct in the validator's field paths. Its
// members belong to the enclosing object, so the pointer omits it.
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

// Validate checks the `validate` tags of v, a struct or a pointer to one. It returns
// the errors in the order of the fields, or nil if there are none.
func Validate(v any) []contract.ErrorDetail {
	if isQuicklyValid(v) {
		return nil
	}
	return validateTags(v)
}

// isQuicklyValid reports whether v is a struct, or a pointer to one, that certainly meets
// its tags.
func isQuicklyValid(v any) bool {
	value := reflect.ValueOf(v)
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return false
	}
	check := quickCheckOf(value.Type())
	return check == nil || check(value)
}

func validateTags(v any) []contract.ErrorDetail {
	err := structValidator().Struct(v)
	if err == nil {
		return nil
	}
	fields, ok := errors.AsType[validator.ValidationErrors](err)
	if !ok { // v is not a struct, so nothing was checked
		return []contract.ErrorDetail{{Detail: "cannot be checked: " + err.Error()}}
	}
	details := make([]contract.ErrorDetail, len(fields))
	for i, f := range fields {
		details[i] = contract.ErrorDetail{Pointer: fieldPointer(f.Namespace()), Detail: describeRule(f)}
	}
	return details
}

// fieldPointer converts the validator's path "Request.history[3].role" to the JSON
// pointer "/history/3/role". Member names contain neither dots nor brackets; a map
// key with one is split there.
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

// describeRule describes the rule that the value violates.
func describeRule(f validator.FieldError) string {
	switch f.Tag() {
	case "required":
		return Required
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

// describeBound describes a bound on a number, a length or a count.
func describeBound(f validator.FieldError, bound string) string {
	switch f.Kind() {
	case reflect.String:
		return fmt.Sprintf("be %s %s characters long", bound, f.Param())
	case reflect.Slice, reflect.Array, reflect.Map:
		return fmt.Sprintf("have %s %s entries", bound, f.Param())
	}
	return fmt.Sprintf("be %s %s, got %v", bound, f.Param(), f.Value())
}
