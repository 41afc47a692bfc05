package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Schema is a compiled schema. It is immutable.
type Schema struct {
	compiled *jsonschema.Schema
	targets  dynamicTargets
}

// InvalidError reports that a value does not match a schema, or that finding out
// takes too many steps.
type InvalidError struct {
	Details []contract.ErrorDetail // at most maxDetails
	Missing []string               // required members that the value, an object, does not have
}

// Error returns the details on one line.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Details))
	for i, d := range e.Details {
		texts[i] = strings.TrimSpace(d.Pointer + " " + d.Detail)
	}
	return strings.Join(texts, "; ")
}

// Compile checks the limits of a schema and compiles it. The error contains the
// reason without the content of the schema.
func Compile(raw json.RawMessage) (*Schema, error) { return compile(raw, nil) }

// location is the base of relative references.
const location = "schema:///"

var errOtherDocument = errors.New("references to other documents are not resolved")

// refusingLoader loads no document.
type refusingLoader struct{}

func (refusingLoader) Load(string) (any, error) { return nil, errOtherDocument }

// compile is Compile with other documents, by URL, that the schema may refer to.
func compile(raw json.RawMessage, others map[string]any) (*Schema, error) {
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("is larger than %d bytes", MaxBytes)
	}
	v, err := decode(raw, limits{depth: MaxDepth, values: MaxValues, references: MaxReferences})
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(refusingLoader{})
	for url, other := range others {
		if err := c.AddResource(url, other); err != nil {
			return nil, err
		}
	}
	if err := c.AddResource(location, v); err != nil {
		return nil, describeCompileError(err)
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, describeCompileError(err)
	}
	return &Schema{compiled: compiled, targets: findDynamicTargets(compiled)}, nil
}

// decode returns the value in raw. Numbers are of type json.Number.
func decode(raw json.RawMessage, limits limits) (any, error) {
	var checked json.RawMessage
	if err := strictjson.Unmarshal(raw, &checked); err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	u := usage{limits: limits}
	if err := u.check(v, 1); err != nil {
		return nil, err
	}
	return v, nil
}

// describeCompileError removes the location that this package has made up.
func describeCompileError(err error) error {
	if _, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return errOtherDocument
	}
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err); ok {
			return fmt.Errorf("is not a valid JSON Schema: %w", &InvalidError{Details: describe(v)})
		}
	}
	text := strings.ReplaceAll(err.Error(), location, "")
	text, _, _ = strings.Cut(text, "\n")
	return fmt.Errorf("is not a valid JSON Schema: %s", text)
}

// Validate checks a JSON value. The error is an *InvalidError.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := decode(raw, limits{depth: maxValueDepth, values: maxValueValues, references: maxValueValues})
	if err != nil {
		return &InvalidError{Details: []contract.ErrorDetail{{Detail: err.Error()}}}
	}
	if err := s.checkCost(v); err != nil {
		return &InvalidError{Details: []contract.ErrorDetail{{Detail: err.Error()}}}
	}
	err = s.compiled.Validate(v)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return &InvalidError{Details: describe(invalid), Missing: findMissing(invalid)}
	}
	return err
}

// findMissing returns the required members that the value itself lacks, sorted. Those of one of
// several permitted forms are among them.
func findMissing(err *jsonschema.ValidationError) []string {
	var missing []string
	if required, ok := err.ErrorKind.(*kind.Required); ok && len(err.InstanceLocation) == 0 {
		missing = append(missing, required.Missing...)
	}
	for _, cause := range err.Causes {
		missing = append(missing, findMissing(cause)...)
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

const maxDetails = 10

// describe returns one detail for each leaf of the tree of errors.
func describe(err *jsonschema.ValidationError) []contract.ErrorDetail {
	printer := message.NewPrinter(language.English)
	var details []contract.ErrorDetail
	var visit func(e *jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		if len(details) == maxDetails {
			return
		}
		if len(e.Causes) == 0 {
			d := contract.ErrorDetail{Pointer: pointerOf(e.InstanceLocation), Detail: shorten(e.ErrorKind.LocalizedString(printer))}
			if !slices.Contains(details, d) {
				details = append(details, d)
			}
			return
		}
		for _, cause := range e.Causes {
			visit(cause)
		}
	}
	visit(err)
	return details
}

const maxText = 200

func shorten(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

func pointerOf(tokens []string) string {
	pointer := ""
	for _, token := range tokens {
		pointer = strictjson.AppendPointer(pointer, token)
	}
	return pointer
}
