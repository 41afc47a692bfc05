package strictyaml

import "reflect"

// Schema returns the JSON Schema (2020-12) of the files that Decode accepts for the
// struct v, with the same options. Editors use it to complete and check keys. It
// describes keys and types; the caller's checks of values are not part of it.
func Schema(title string, v any, opts ...Option) map[string]any {
	dec := decoder{
		structs:      map[reflect.Type]*structKeys{},
		scalarOrList: map[reflect.Type]bool{},
		numberAsText: map[reflect.Type]bool{},
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
		properties[name] = d.schemaOf(t.Field(field).Type)
	}
	return jsonSchema{"type": "object", "properties": properties, "additionalProperties": false}
}
