package mcpclient

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// The library rejects a message that nests deeper than 1,000 levels as a whole, and over
// HTTP ends the session because of it, with all calls in flight. Therefore such a message
// is replaced before the library reads it.

var errTooDeep = fmt.Sprintf("nests deeper than %d levels", strictjson.MaxDepth)

// boundDepth returns the message, or its replacement if it nests deeper than
// strictjson.MaxDepth: a list without the values that are too deep, because only their entries
// are invalid, or an error in the place of another result.
func boundDepth(message []byte) []byte {
	if bytes.Count(message, []byte("["))+bytes.Count(message, []byte("{")) <= strictjson.MaxDepth {
		return message
	}
	pruned, changed := prune(message, strictjson.MaxDepth)
	if !changed {
		return message
	}
	var members struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
	}
	if strictjson.UnmarshalAllowUnknown(pruned, &members) != nil {
		return message
	}
	if isList(members.Result) || members.ID == nil || members.Method != "" {
		return pruned
	}
	return invalidResult(members.ID, errTooDeep)
}

// prune returns the JSON document with null in the place of each array and object that is
// deeper than limit, and whether there is one. Of a text that is no document it may drop
// any part.
func prune(doc []byte, limit int) (pruned []byte, changed bool) {
	pruned = make([]byte, 0, len(doc))
	depth, quoted := 0, false
	for i := 0; i < len(doc); i++ {
		c, n := doc[i], 1
		switch {
		case quoted && c == '\\' && i+1 < len(doc):
			n = 2 // an escaped character does not end the string
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth == limit+1 {
				pruned, changed = append(pruned, "null"...), true
			}
		case c == ']', c == '}':
			depth--
			if depth == limit {
				continue // of the value that is null now
			}
		}
		if depth <= limit {
			pruned = append(pruned, doc[i:i+n]...)
		}
		i += n - 1
	}
	return pruned, changed
}
