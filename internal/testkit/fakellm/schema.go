package fakellm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/llm"
)

// schemaParser converts a schema of a request to llm.Schema, with the errors of
// the real servers.
type schemaParser struct {
	gemini bool // Gemini's Schema: types in upper case or as numbers
	strict bool // OpenAI's strict mode
	// optional collects properties that are not required.
	optional *[]string
}

// parse returns the schema with its properties sorted by name.
func (sr schemaParser) parse(at string, v any) (*llm.Schema, error) {
	m, ok := v.(jsonObject)
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
		return s, sr.parseProperties(at, m, s)
	case "array":
		items, err := sr.parse(at+".items", m["items"])
		s.Items = items
		return s, err
	case "string", "number", "integer", "boolean":
		return s, nil
	default:
		return nil, fmt.Errorf("%s.type: must be specified", at)
	}
}

func (sr schemaParser) typeOf(v any) string {
	if sr.gemini {
		return strings.ToLower(enumName(schemaTypes(), v))
	}
	s, _ := v.(string)
	return s
}

func (sr schemaParser) parseProperties(at string, m jsonObject, s *llm.Schema) error {
	props, _ := m["properties"].(jsonObject)
	if len(props) == 0 {
		return fmt.Errorf("%s.properties: should be non-empty for OBJECT type", at)
	}
	required, _ := m["required"].([]any)
	for name, v := range props {
		if !slices.Contains(required, any(name)) {
			*sr.optional = append(*sr.optional, at+"."+name)
		}
		p, err := sr.parse(at+".properties["+name+"]", v)
		if err != nil {
			return err
		}
		s.Properties = append(s.Properties, llm.Property{Name: name, Schema: p})
	}
	slices.SortFunc(s.Properties, func(a, b llm.Property) int { return strings.Compare(a.Name, b.Name) })
	ordering, _ := m["propertyOrdering"].([]any)
	return errors.Join(
		sr.checkNames(at+".required", required, props, sr.strict),
		sr.checkNames(at+".property_ordering", ordering, props, false),
		sr.checkClosed(at, m["additionalProperties"]),
	)
}

// checkNames checks a list of property names, which must be complete if all is set.
func (sr schemaParser) checkNames(at string, list []any, props jsonObject, all bool) error {
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

func (sr schemaParser) checkClosed(at string, v any) error {
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
