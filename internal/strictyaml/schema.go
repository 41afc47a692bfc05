package strictyaml

import (
	"maps"
	"reflect"
	"strings"
)

// Schema returns the JSON Schema (2020-12) of the files that Decode accepts for the
// struct v, with the same options, and by accepts by its `validate` tags. Editors use it
// to complete and check keys and values. Other checks of the caller are not part of it.
func Schema(title string, v any, by *Validator, opts ...Option) map[string]any {
	dec := decoder{
		structs:      map[reflect.Type]*structKeys{},
		scalarOrList: map[reflect.Type]bool{},
		numberAsText: map[reflect.Type]bool{},
		validator:    by,
	}
	for _, o := range opts {
		o(&dec)
	}
	schema := dec.schemaOf(reflect.TypeOf(v))
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", title
	return schema
}

// jsonSchema is a schema as a JSON object.
type jsonSchema map[string]any

// schemaOf returns the schema of the values that decodeNode accepts for t, which must
// not be recursive.
func (d *decoder) schemaOf(t reflect.Type) jsonSchema {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonSchema{"anyOf": []jsonSchema{d.schemaOf(t.Elem()), {"type": "null"}}}
	case reflect.Struct:
		return d.schemaOfStruct(t)
	case reflect.Map:
		return jsonSchema{"type": "object", "additionalProperties": d.schemaOf(t.Elem())}
	case reflect.Slice:
		list := jsonSchema{"type": "array", "items": d.schemaOf(t.Elem())}
		if d.scalarOrList[t] {
			return jsonSchema{"anyOf": []jsonSchema{list, d.schemaOf(t.Elem())}}
		}
		return list
	case reflect.Bool:
		return jsonSchema{"type": "boolean"}
	case reflect.String:
		if d.numberAsText[t] {
			return jsonSchema{"type": []string{"string", "number"}}
		}
		return jsonSchema{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return jsonSchema{"type": "number"}
	}
	return jsonSchema{"type": "integer"}
}

func (d *decoder) schemaOfStruct(t reflect.Type) jsonSchema {
	keys, properties := d.keysOfStruct(t), jsonSchema{}
	for name, field := range keys.field {
		schema := d.schemaOf(t.Field(field).Type)
		if tag := t.Field(field).Tag.Get("validate"); tag != "" {
			d.validator.constrain(schema, strings.Split(tag, ","))
		}
		properties[name] = schema
	}
	return jsonSchema{"type": "object", "properties": properties, "additionalProperties": false}
}

// constrain adds the keywords for the rules of a tag to the schema of its field.
func (by *Validator) constrain(schema jsonSchema, rules []string) {
	if variants, ok := schema["anyOf"].([]jsonSchema); ok {
		for _, variant := range variants {
			switch variant["type"] {
			case "null":
			case "array":
				by.constrain(variant, rules)
			default: // a scalar in place of a list: what follows dive holds for it
				_, ofItem, isList := strings.Cut(strings.Join(rules, ","), "dive,")
				if !isList {
					ofItem = strings.Join(rules, ",")
				}
				by.constrain(variant, strings.Split(ofItem, ","))
			}
		}
		return
	}
	optional := false
	for i, rule := range rules {
		name, param, _ := strings.Cut(rule, "=")
		switch name {
		case "omitempty":
			optional = true
		case "dive":
			if items, ok := schema["items"].(jsonSchema); ok {
				by.constrain(items, rules[i+1:])
			}
			return
		case "unique":
			schema["uniqueItems"] = true
		case "required":
			schema["minLength"] = 1
		case "range":
			schema["minimum"], schema["maximum"] = parseRange(param)
		case "oneof":
			words := strings.Fields(param)
			if optional {
				words = append(words, "")
			}
			schema["enum"] = words
		default:
			if keywords := by.rules[name].Schema; keywords != nil {
				maps.Copy(schema, keywords(param))
			}
		}
	}
	if optional { // "" is valid as well
		delete(schema, "minLength")
		if pattern, ok := schema["pattern"].(string); ok {
			schema["pattern"] = "^$|" + pattern
		}
	}
}
