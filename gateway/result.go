package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// newReply converts the result of a tool.
func newReply(result *mcpclient.Result) *reply {
	if result.IsError {
		return &reply{failed: newToolError(result)}
	}
	out := contract.ActionResult{Structured: result.Structured}
	if len(result.Content) == 1 && result.Structured == nil {
		switch c := &result.Content[0]; c.Type {
		case "text":
			out.Type, out.Content, out.MIMEType = contract.ActionText, strictjson.QuoteString(c.Text), "text/plain"
			return &reply{result: out}
		case "image":
			out.Type, out.Content, out.MIMEType = contract.ActionImage, strictjson.QuoteString(base64.StdEncoding.EncodeToString(c.Data)), c.MIMEType
			return &reply{result: out}
		case "audio":
			out.Type, out.Content, out.MIMEType = contract.ActionAudio, strictjson.QuoteString(base64.StdEncoding.EncodeToString(c.Data)), c.MIMEType
			return &reply{result: out}
		}
	}
	out.Type = contract.ActionToolResult
	blocks := make([]string, len(result.Content))
	for i := range result.Content {
		blocks[i] = string(result.Content[i].JSON)
	}
	out.Content = json.RawMessage("[" + strings.Join(blocks, ",") + "]")
	return &reply{result: out}
}

// toolError is the body with which a tool reports an error.
type toolError struct {
	Code       string `json:"error_code"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
	Severity   string `json:"severity"`
}

// newToolError returns the error that a tool reports. Its text is the message unless it is
// a body with an error_code.
func newToolError(result *mcpclient.Result) *contract.ActionError {
	var texts []string
	bodies := []json.RawMessage{result.Structured}
	for i := range result.Content {
		texts = append(texts, result.Content[i].Text)
		bodies = append(bodies, json.RawMessage(result.Content[i].Text))
	}
	for _, raw := range bodies {
		if e := parseToolError(raw); e != nil {
			return e
		}
	}
	text := strings.TrimSpace(strings.Join(texts, "\n"))
	if text == "" {
		text = "the tool reported an error without a text"
	}
	return warningError(contract.ActionFailed, text, "")
}

// validCode matches the error codes of tools. They are facts in the audit log, which are
// neither masked nor erased, so that they must not contain any other text.
var validCode = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:/-]{0,63}$`)

// isReserved reports whether an error code states what the gateway has done with a call, for
// example that it was not made, so that it may be repeated. The call of a tool that reports
// such a code has been made.
func isReserved(code string) bool {
	switch code {
	case contract.ActionNotFound, contract.ActionAmbiguous, contract.ActionInvalidInput, contract.ActionUnavailable, contract.ActionTimeout,
		contract.ActionOutcomeUnknown, contract.ActionBadResult, contract.ActionForbidden, contract.ActionRateLimited,
		contract.ActionQuarantined, contract.ActionNotRecorded:
		return true
	}
	return false
}

// parseToolError returns the error in a body, or nil.
func parseToolError(raw json.RawMessage) *contract.ActionError {
	var body toolError
	if strictjson.UnmarshalAllowUnknown(raw, &body) != nil || !validCode.MatchString(body.Code) {
		return nil //nolint:nilerr // any other text is no such body
	}
	if isReserved(body.Code) {
		body.Message = strings.TrimSuffix(body.Code+": "+body.Message, ": ")
		body.Code = contract.ActionFailed
	}
	e := &contract.ActionError{Code: body.Code, Message: body.Message, Suggestion: body.Suggestion, Severity: strings.ToUpper(body.Severity)}
	if e.Message == "" {
		e.Message = "the tool reported an error"
	}
	if e.Severity != contract.SeverityWarning {
		e.Severity = contract.SeveritySevere
	}
	return e
}

// checkResult checks what every result must have, and the schemas.
func checkResult(t *tool, r *contract.ActionResult) error {
	bad := func(format string, args ...any) error {
		return severeError(contract.ActionBadResult, fmt.Sprintf("the result of %s ", t.Action)+fmt.Sprintf(format, args...), "")
	}
	if (r.Type == contract.ActionImage || r.Type == contract.ActionAudio) && r.MIMEType == "" {
		return bad("is of type %s without a mime_type", r.Type)
	}
	if t.output != nil {
		if r.Structured == nil {
			return bad("has no structured content, which its schema promises")
		}
		if err := t.output.Validate(r.Structured); err != nil {
			return bad("does not match its schema: %v", err)
		}
	}
	if t.response != nil {
		raw, err := strictjson.Marshal(r)
		if err != nil {
			return bad("cannot be encoded: %v", err)
		}
		if err := t.response.Validate(raw); err != nil {
			return bad("does not match the declared output_schema: %v", err)
		}
	}
	return nil
}
