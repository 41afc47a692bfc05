package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// A message that is not JSON or not JSON-RPC ends a session, with all calls in flight. If it is
// a response, it is replaced before it is read, so that only its call fails. Any other line of
// a process is taken for one of a log.

// codeInvalid is the code of the error that replaces a result. It is no code of JSON-RPC or
// of the library.
const codeInvalid = -32098

const (
	errNoJSON       = "is not valid JSON"
	errNoStrictJSON = "is not valid JSON, or has an object with the same name twice"
	errNoResponse   = "is no response of JSON-RPC"
)

// repairMessage is applied to each message over HTTP.
func repairMessage(message []byte) []byte {
	message = boundDepth(message)
	switch {
	case isMessage(message):
		return message
	case !strictjson.IsJSON(message):
		return replaceResult(message, errNoJSON)
	}
	decoded, err := jsonrpc.DecodeMessage(message) // it accepts the same name twice
	if response, ok := decoded.(*jsonrpc.Response); err != nil || ok && response.Result == nil && response.Error == nil {
		if replaced := replaceResponse(message); replaced != nil {
			return replaced
		}
	}
	return message
}

// repairLine is applied to each line of a process. It returns nil if the line is no message.
func repairLine(line []byte) []byte {
	if isMessage(line) {
		return line
	}
	line = boundDepth(line)
	if repaired, err := strictjson.ReplaceInvalidUTF8(line); err == nil {
		line = repaired
	} else {
		line = replaceResult(line, errNoStrictJSON)
	}
	if isMessage(line) {
		return line
	}
	return replaceResponse(line)
}

// isMessage reports whether the library can decode the message, or the batch of messages. Those
// that only the library accepts, for example with the same name twice, are not among them.
func isMessage(message []byte) bool {
	if bytes.HasPrefix(message, []byte("[")) {
		var batch []json.RawMessage
		return strictjson.UnmarshalAllowUnknown(message, &batch) == nil && len(batch) > 0 &&
			!slices.ContainsFunc(batch, func(m json.RawMessage) bool { return !bytes.HasPrefix(m, []byte("{")) || !isMessage(m) })
	}
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  *string         `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   *jsonrpc.Error  `json:"error"`
	}
	if strictjson.UnmarshalAllowUnknown(message, &m) != nil || m.Version != "2.0" {
		return false
	}
	if m.Method != nil {
		return m.ID == nil || isID(m.ID)
	}
	return isID(m.ID) && (m.Result != nil || m.Error != nil)
}

// isID reports whether the value is a string or a number in the range of a float64.
func isID(id json.RawMessage) bool {
	if len(id) > 0 && id[0] == '"' {
		return true
	}
	_, err := strconv.ParseFloat(string(id), 64)
	return err == nil
}

// replaceResponse returns an error in the place of a response that cannot be decoded, nil if the
// message is none.
func replaceResponse(message []byte) []byte {
	var m struct {
		Version string           `json:"jsonrpc"`
		ID      json.RawMessage  `json:"id"`
		Method  *json.RawMessage `json:"method"`
	}
	if strictjson.UnmarshalAllowUnknown(message, &m) != nil || m.Version != "2.0" || m.Method != nil || !isID(m.ID) {
		return nil
	}
	return invalidResult(m.ID, errNoResponse)
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
