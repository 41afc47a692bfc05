package rest

import (
	"encoding/hex"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

const typeProblem = "application/problem+json"

// problemBase is the type URI of every problem, without the code at its end.
const problemBase = "https://github.com/caprouter/caprouter/problems/"

// Problem is an error as clients receive it (RFC 9457).
type Problem struct {
	Type      string                 `json:"type"`
	Title     string                 `json:"title"`
	Status    int                    `json:"status"`
	Code      contract.Code          `json:"code"`
	Detail    string                 `json:"detail,omitempty"`
	RequestID string                 `json:"request_id"`
	Errors    []contract.ErrorDetail `json:"errors,omitempty"`
}

// UnsupportedProblem is the problem of a request without an eligible agent. It
// includes the response.
type UnsupportedProblem struct {
	Problem
	Outcome  contract.Status       `json:"outcome"`
	Data     contract.ResponseData `json:"data"`
	Decision *contract.Decision    `json:"decision"`
}

// ExpiredProblem is the problem of a request that was sent before, whose response is
// not stored any more. It includes what remains of that request.
type ExpiredProblem struct {
	Problem
	Outcome contract.Status `json:"outcome"`
	Data    ExpiredData     `json:"data"`
}

// ExpiredData identifies the response that is not stored any more. EndedAt and
// AnswerSHA256 are absent if the outcome of the request is not known.
type ExpiredData struct {
	RequestID    string    `json:"request_id"` // of the first request
	EndedAt      time.Time `json:"ended_at,omitzero"`
	AnswerSHA256 string    `json:"answer_sha256,omitempty"` // of the JSON of its data, hexadecimal
}

// ToolProblem is the problem of a call of a tool without a result.
type ToolProblem struct {
	Problem
	ErrorCode  string `json:"error_code"`
	Suggestion string `json:"suggestion,omitempty"`
	Severity   string `json:"severity"`
}

// problemType holds the properties that all problems of one code share.
type problemType struct {
	status int
	title  string
}

// problemTypes is the only table from error codes to HTTP statuses. It is
// read-only.
var problemTypes = map[contract.Code]problemType{
	contract.CodeInvalidRequest:       {http.StatusUnprocessableEntity, "The request is not valid"},
	contract.CodePayloadTooLarge:      {http.StatusRequestEntityTooLarge, "The body is too large"},
	contract.CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "The body's media type is not supported"},
	contract.CodeUnauthenticated:      {http.StatusUnauthorized, "Authentication is required"},
	contract.CodeForbidden:            {http.StatusForbidden, "The caller is not authorized"},
	contract.CodeNotFound:             {http.StatusNotFound, "Not found"},
	contract.CodeMethodNotAllowed:     {http.StatusMethodNotAllowed, "Method not allowed"},
	contract.CodeConflict:             {http.StatusConflict, "The request conflicts with the current state"},
	contract.CodeResultExpired:        {http.StatusGone, "The response is not stored any more"},
	contract.CodePreconditionFailed:   {http.StatusPreconditionFailed, "A precondition failed"},
	contract.CodeNoEligibleAgent:      {http.StatusUnprocessableEntity, "No agent may serve this request"},
	contract.CodeRateLimited:          {http.StatusTooManyRequests, "Too many requests from this caller"},
	contract.CodeQuotaExceeded:        {http.StatusTooManyRequests, "The share of the store is used up"},
	contract.CodeOverloaded:           {http.StatusServiceUnavailable, "The server is overloaded"},
	contract.CodeAuditUnavailable:     {http.StatusServiceUnavailable, "The audit log cannot be written"},
	contract.CodeToolFailed:           {http.StatusBadGateway, "The tool failed"},
	contract.CodeToolUnavailable:      {http.StatusServiceUnavailable, "The tool is not available"},
	contract.CodeToolTimeout:          {http.StatusGatewayTimeout, "The tool did not answer"},
	contract.CodeInternal:             {http.StatusInternalServerError, "Internal error"},
}

// newProblem returns the problem for e, or false if the code of e is not in the
// table.
func newProblem(e *contract.Error, requestID string) (Problem, bool) {
	typ, ok := problemTypes[e.Code]
	if e.Malformed {
		typ.status = http.StatusBadRequest
	}
	return Problem{
		Type:      problemBase + string(e.Code),
		Title:     typ.title,
		Status:    typ.status,
		Code:      e.Code,
		Detail:    e.Message,
		RequestID: requestID,
		Errors:    e.Details,
	}, ok
}

// encodeProblem is the httpserver.API.EncodeError of the REST interface.
func encodeProblem(requestID string, e *contract.Error) (httpserver.EncodedError, bool) {
	p, ok := newProblem(e, requestID)
	encoded := httpserver.EncodedError{Status: p.Status, ContentType: typeProblem, Body: p}
	if ended := e.Ended; ended != nil {
		encoded.Body = ExpiredProblem{Problem: p, Outcome: ended.Status, Data: ExpiredData{
			RequestID: ended.RequestID, EndedAt: ended.EndedAt, AnswerSHA256: hex.EncodeToString(ended.AnswerHash),
		}}
	}
	if failed := e.Action; failed != nil {
		encoded.Body = ToolProblem{Problem: p, ErrorCode: failed.Code, Suggestion: failed.Suggestion, Severity: failed.Severity}
	}
	return encoded, ok
}

// writeUnsupported answers a request without an eligible agent by fallback policy
// B: a problem with the reason and with the intents and domains that are served.
func writeUnsupported(c *httpserver.Context, resp *contract.Response) error {
	e := &contract.Error{Code: contract.CodeNoEligibleAgent, Message: "no agent is eligible"}
	if reason := resp.Data.Unsupported; reason != nil {
		e.Message = reason.Detail
	}
	problem, _ := newProblem(e, resp.RequestID) // if the response is replayed, not the id of this request
	c.SetOutcome(string(e.Code))
	return c.WriteJSON(problem.Status, typeProblem, UnsupportedProblem{
		Problem:  problem,
		Outcome:  resp.Status,
		Data:     resp.Data,
		Decision: resp.Decision,
	})
}
