package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// A message that is not JSON ends a session over HTTP, with all calls in flight, and is
// taken for a line of a log over stdio. If it is a result, it is replaced before it is read,
// so that only its call fails.

// codeInvalid is the code of the error that replaces a result. It is no code of JSON-RPC or
// of the library.
const codeInvalid = -32098

const (
	errNoJSON       = "is not valid JSON"
	errNoStrictJSON = "is not valid JSON, or has an object with the same name twice"
)

// repairMessage is applied to each message over HTTP.
func repairMessage(message []byte) []byte {
	message = boundDepth(message)
	if strictjson.IsJSON(message) {
		return message
	}
	return replaceResult(message, errNoJSON)
}

// repairLine is applied to each line of a process that is not strict JSON.
func repairLine(line []byte) []byte {
	line = boundDepth(line)
	if repaired, err := strictjson.ReplaceInvalidUTF8(line); err == nil {
		return repaired
	}
	return replaceResult(line, errNoStrictJSON)
}

// replaceResult returns an error with the text in the place of a result, whose id must
// precede it. Any other message is returned as it is.
func replaceResult(message []byte, text string) []byte {
	const result = `"result":`
	head, _, found := bytes.Cut(message, []byte(result))
	if !found {
		return message
	}
	var members struct {
		ID json.RawMessage `json:"id"`
	}
	if strictjson.UnmarshalAllowUnknown(append(slices.Clip(head), result+"null}"...), &members) != nil || members.ID == nil {
		return message
	}
	return invalidResult(members.ID, text)
}

// invalidResult returns the response with an error about a result.
func invalidResult(id json.RawMessage, text string) []byte {
	message, err := strictjson.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": jsonrpc.Error{Code: codeInvalid, Message: text},
	})
	if err != nil {
		panic(err) // the id was decoded
	}
	return message
}

// describeReplaced returns what is wrong with a result that was replaced, or "" for any other
// error.
func describeReplaced(err error) string {
	if reply, ok := errors.AsType[*jsonrpc.Error](err); ok && reply.Code == codeInvalid {
		return "it " + reply.Message
	}
	return ""
}
