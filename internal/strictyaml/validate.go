package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
)

// Rule is a form of texts that the tag `name=param` requires.
type Rule struct {
	// Problem returns why the text does not have the form; "" if it has.
	Problem func(text, param string) string
	// Schema returns the keywords of JSON Schema for the form; nil = none.
	Schema func(param string) map[string]any
}

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
		check := func(f validator.FieldLevel) bool { return rule.Problem(f.Field().String(), f.Param()) == "" }
		if err := v.RegisterValidation(tag, check); err != nil {
			return nil, fmt.Errorf("register rule %s: %w", tag, err)
		}
	}
	return &Validator{library: v, rules: rules}, nil
}

// Problem is a value that violates a tag.
type Problem struct {
	Steps  []any // keys and indices that lead to the value
	Detail string
}

// String returns the problem behind its key: "listen[0].port: must be …".
func (p Problem) String() string {
	var key strings.Builder
	for _, step := range p.Steps {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&key, "[%d]", step)
		default:
			if key.Len() > 0 {
				key.WriteByte('.')
			}
			fmt.Fprint(&key, step)
		}
	}
	return key.String() + ": " + p.Detail
}

// Problems returns the fields of the struct v that violate their `validate` tag. Maps in
// the struct are not checked, because their order is random.
func (by *Validator) Problems(v any) (list []Problem) {
	err := by.library.Struct(v)
	fields, ok := errors.AsType[validator.ValidationErrors](err)
	if err != nil && !ok { // v is not a struct, so nothing was checked
		return []Problem{{Detail: fmt.Sprintf("cannot be checked: %v", err)}}
	}
	for _, f := range fields {
		steps := fieldSteps(f.Namespace())
		if f.Tag() == "unique" {
			list = append(list, describeRepeated(steps, f.Value())...)
		} else {
			list = append(list, Problem{steps, by.describe(f)})
		}
	}
	return list
}

// Validate adds an error for each problem of the struct at the path.
func (d *Document) Validate(at Path, v any, by *Validator) {
	for _, p := range by.Problems(v) {
		d.Errorf(at.At(p.Steps...), "%s", p.Detail)
	}
}

// describeRepeated returns a problem for each value of a list that occurs before.
func describeRepeated(at []any, list any) (problems []Problem) {
	values := reflect.ValueOf(list)
	seen := map[any]bool{}
	for i := range values.Len() {
		v := values.Index(i).Interface()
		if seen[v] {
			problems = append(problems, Problem{append(slices.Clip(at), i), fmt.Sprintf("%q is listed twice", v)})
		}
		seen[v] = true
	}
	return problems
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
		return rule.Problem(reflect.ValueOf(f.Value()).String(), f.Param())
	}
	switch f.Tag() {
	case "required":
		return "must not be empty"
	case "range":
		low, high, _ := strings.Cut(f.Param(), " ")
		return fmt.Sprintf("must be from %s to %s, got %v", low, high, f.Value())
	case "oneof":
		words, got := strings.Fields(f.Param()), reflect.ValueOf(f.Value()).String()
		detail := fmt.Sprintf("must be %s, got %q", joinAlternatives(words), shortenText(got))
		if near := Nearest(got, words); near != "" {
			detail += fmt.Sprintf("; did you mean %q?", near)
		}
		return detail
	}
	return fmt.Sprintf("does not meet the rule %s=%s", f.Tag(), f.Param())
}

// joinAlternatives returns "a, b or c".
func joinAlternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// isInRange panics if the parameter of the tag is not two numbers, like the rules of
// the library.
func isInRange(f validator.FieldLevel) bool {
	low, high := parseRange(f.Param())
	number := f.Field()
	if number.CanInt() {
		return float64(number.Int()) >= low && float64(number.Int()) <= high
	}
	return number.Float() >= low && number.Float() <= high
}

func parseRange(param string) (low, high float64) {
	if n, err := fmt.Sscan(param, &low, &high); n != 2 {
		panic(fmt.Sprintf("range=%s: %v", param, err))
	}
	return low, high
}
