package strictjson

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Position returns the line and column, both from 1, of the value at the JSON
// pointer. If the pointer leads to no value, it returns the position of the last
// member or element on its path that exists. data must be JSON.
func Position(data []byte, pointer string) (line, column int) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), walkOptions)
	var best int64
	longest, name := -1, false // of the pointer at best, and whether it is that of a name
	for {
		before := dec.InputOffset()
		if _, err := dec.ReadToken(); err != nil {
			break
		}
		at := string(dec.StackPointer())
		// A value follows its name, and has the same pointer. The end of an object or
		// array has it as well.
		if isOnPath(at, pointer) && (len(at) > longest || len(at) == longest && name) {
			longest, name = len(at), isName(dec)
			// The first token of a value is preceded by white space and separators.
			rest := data[before:dec.InputOffset()]
			best = before + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n,:")))
		}
		if at == pointer && !name {
			break
		}
	}
	return lineColumn(data, best)
}

// isName reports whether the last token is the name of a member.
func isName(dec *jsontext.Decoder) bool {
	kind, length := dec.StackIndex(dec.StackDepth())
	return kind == jsontext.KindBeginObject && length%2 == 1
}

// isOnPath reports whether the pointer is at or passes through the value at.
func isOnPath(at, pointer string) bool {
	return len(at) <= len(pointer) && pointer[:len(at)] == at && (len(at) == len(pointer) || pointer[len(at)] == '/')
}
