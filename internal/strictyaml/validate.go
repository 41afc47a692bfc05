package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
)

// Rule returns why the text does not have the form that the tag `name=param` requires;
// "" if it has.
type Rule func(text, param string) string

// Validator checks `validate` tags of decoded structs. Beside the rules of its
// creator and of the library, it knows range=LOW HIGH for numbers.
type Validator struct {
	library *validator.Validate
	rules   map[string]Rule
}

// NewValidator returns a validator with the rules, which are keyed by their tags.
func NewValidator(rules map[string]Rule) (*Validator, error) {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return f.Tag.Get("yaml") })
	if err := v.RegisterValidation("range", isInRange); err != nil {
		return nil, err
	}
	for tag, rule := range rules {
		check := func(f validator.FieldLevel) bool { return rule(f.Field().String(), f.Param()) == "" }
		if err := v.RegisterValidation(tag, check); err != nil {
			return nil, fmt.Errorf("register rule %s: %w", tag, err)
		}
	}
	return &Validator{library: v, rules: rules}, nil
}

// Validate adds an error for each field of the struct at the path that violates its
// `validate` tag. Maps in the struct are not checked, because their order is random.
func (d *Document) Validate(at Path, v any, by *Validator) {
	err := by.library.Struct(v)
	fields, ok := errors.AsType[validator.ValidationErrors](err)
	if err != nil && !ok { // v is not a struct, so nothing was checked
		d.Errorf(at, "cannot be checked: %v", err)
	}
	for _, f := range fields {
		d.Errorf(at.At(fieldSteps(f.Namespace())...), "%s", by.describe(f))
	}
}

// fieldSteps converts the library's path "Entry.not_for[3]" to the steps not_for, 3.
func fieldSteps(namespace string) []any {
	_, path, _ := strings.Cut(namespace, ".") // the name of the Go type
	var steps []any
	for token := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		if i, err := strconv.Atoi(token); err == nil {
			steps = append(steps, i)
		} else {
			steps = append(steps, token)
		}
	}
	return steps
}

func (by *Validator) describe(f validator.FieldError) string {
	if rule, ok := by.rules[f.Tag()]; ok {
		return rule(reflect.ValueOf(f.Value()).String(), f.Param())
	}
	switch f.Tag() {
	case "range":
		low, high, _ := strings.Cut(f.Param(), " ")
		return fmt.Sprintf("must be from %s to %s, got %v", low, high, f.Value())
	case "oneof":
		return fmt.Sprintf("must be %s, got %q", strings.Join(strings.Fields(f.Param()), ", "), f.Value())
	}
	return fmt.Sprintf("does not meet the rule %s=%s", f.Tag(), f.Param())
}

// isInRange panics if the parameter of the tag is not two numbers, like the rules of
// the library.
func isInRange(f validator.FieldLevel) bool {
	var low, high float64
	if n, err := fmt.Sscan(f.Param(), &low, &high); n != 2 {
		panic(fmt.Sprintf("range=%s: %v", f.Param(), err))
	}
	number := f.Field()
	if number.CanInt() {
		return float64(number.Int()) >= low && float64(number.Int()) <= high
	}
	return number.Float() >= low && number.Float() <= high
}
