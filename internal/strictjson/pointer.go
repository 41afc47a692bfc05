package strictjson

import "github.com/go-json-experiment/json/jsontext"

// AppendPointer returns the JSON pointer of the member with the name, in the value at
// the pointer: the name follows a slash, with "~" and "/" escaped (RFC 6901, section 3).
func AppendPointer(pointer, name string) string {
	return string(jsontext.Pointer(pointer).AppendToken(name))
}
