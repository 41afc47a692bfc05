package fakellm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/llm"
)

// schemaReader reads the schema of a request back into ours, and complains as
// the servers do.
type schemaReader struct {
	gemini bool // Schema of the Gemini API: types in upper case or as numbers
	strict bool // OpenAI's strict mode
	// optional collects the properties that are not required.
	optional *[]string
}

// read returns the schema with its properties by name: where a wire keeps an
// order, it is not looked at.
func (sr schemaReader) read(at string, v any) (*llm.Schema, error) {
	m, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("%s: not an object", at)
	}
	if sr.gemini {
		for name := range m {
			if !slices.Contains(geminiSchemaMembers(), name) {
				return nil, fmt.Errorf("%s: Unknown name %q: Cannot find field", at, name)
			}
		}
	}
	s := &llm.Schema{Type: sr.typeOf(m["type"])}
	s.Description, _ = m["description"].(string)
	if enum, ok := m["enum"].([]any); ok {
		for _, e := range enum {
			text, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("%s.enum: only strings are allowed", at)
			}
			s.Enum = append(s.Enum, text)
		}
	}
	if s.Enum != nil && s.Type != "string" {
		return nil, fmt.Errorf("%s.enum: only allowed for STRING type", at)
	}
	switch s.Type {
	case "object":
		return s, sr.properties(at, m, s)
	case "array":
		items, err := sr.read(at+".items", m["items"])
		s.Items = items
		return s, err
	case "string", "number", "integer", "boolean":
		return s, nil
	default:
		return nil, fmt.Errorf("%s.type: must be specified", at)
	}
}

func (sr schemaReader) typeOf(v any) string {
	if sr.gemini {
		return strings.ToLower(enumName(schemaTypes(), v))
	}
	s, _ := v.(string)
	return s
}

func (sr schemaReader) properties(at string, m object, s *llm.Schema) error {
	props, _ := m["properties"].(object)
	if len(props) == 0 {
		return fmt.Errorf("%s.properties: should be non-empty for OBJECT type", at)
	}
	required, _ := m["required"].([]any)
	for name, v := range props {
		if !slices.Contains(required, any(name)) {
			*sr.optional = append(*sr.optional, at+"."+name)
		}
		p, err := sr.read(at+".properties["+name+"]", v)
		if err != nil {
			return err
		}
		s.Properties = append(s.Properties, llm.Property{Name: name, Schema: p})
	}
	slices.SortFunc(s.Properties, func(a, b llm.Property) int { return strings.Compare(a.Name, b.Name) })
	ordering, _ := m["propertyOrdering"].([]any)
	return errors.Join(
		sr.names(at+".required", required, props, sr.strict),
		sr.names(at+".property_ordering", ordering, props, false),
		sr.closed(at, m["additionalProperties"]),
	)
}

// names checks a list of names of properties, which may have to hold them all.
func (sr schemaReader) names(at string, list []any, props object, all bool) error {
	for i, n := range list {
		if name, _ := n.(string); props[name] == nil {
			return fmt.Errorf("%s[%d]: property is not defined", at, i)
		}
	}
	if all && len(list) != len(props) {
		return fmt.Errorf("%s: is required to be supplied and to be an array including every key in properties", at)
	}
	return nil
}

func (sr schemaReader) closed(at string, v any) error {
	if open, ok := v.(bool); sr.strict && (!ok || open) {
		return fmt.Errorf("%s: 'additionalProperties' is required to be supplied and to be false", at)
	}
	return nil
}

func geminiSchemaMembers() []string {
	return []string{
		"type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties", "required",
		"propertyOrdering", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "example",
		"anyOf", "default",
	}
}
