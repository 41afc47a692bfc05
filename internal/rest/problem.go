package rest

import (
	"net/http"

	"github.com/caprouter/caprouter/contract"
)

// problemBase starts the type URI of every problem; the code ends it.
const problemBase = "https://github.com/caprouter/caprouter/problems/"

// internalDetail is all a caller learns of an internal error.
const internalDetail = "something went wrong on our side; the server's log says what under this request_id"

// Problem is an error as it goes over the wire (RFC 9457).
type Problem struct {
	Type      string                 `json:"type"`
	Title     string                 `json:"title"`
	Status    int                    `json:"status"`
	Code      contract.Code          `json:"code"`
	Detail    string                 `json:"detail,omitempty"`
	RequestID string                 `json:"request_id"`
	Errors    []contract.ErrorDetail `json:"errors,omitempty"`
}

// UnsupportedProblem is the problem of a request that nobody may serve: the
// answer stands beside the error.
type UnsupportedProblem struct {
	Problem
	Outcome  contract.Status       `json:"outcome"`
	Data     contract.ResponseData `json:"data"`
	Decision *contract.Decision    `json:"decision"`
}

// kind is what every problem of one code has in common.
type kind struct {
	status int
	title  string
}

// kinds is the one table from codes to HTTP. It is never written to.
var kinds = map[contract.Code]kind{
	contract.CodeInvalidRequest:       {http.StatusUnprocessableEntity, "The request is not valid"},
	contract.CodePayloadTooLarge:      {http.StatusRequestEntityTooLarge, "The body is too large"},
	contract.CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "The body's media type is not supported"},
	contract.CodeUnauthenticated:      {http.StatusUnauthorized, "The caller is not known"},
	contract.CodeForbidden:            {http.StatusForbidden, "The caller may not do this"},
	contract.CodeNotFound:             {http.StatusNotFound, "There is no such thing"},
	contract.CodeMethodNotAllowed:     {http.StatusMethodNotAllowed, "The path does not have this method"},
	contract.CodeConflict:             {http.StatusConflict, "The request conflicts with what is there"},
	contract.CodePreconditionFailed:   {http.StatusPreconditionFailed, "A precondition does not hold"},
	contract.CodeNoEligibleAgent:      {http.StatusUnprocessableEntity, "No agent may serve this request"},
	contract.CodeRateLimited:          {http.StatusTooManyRequests, "Too many requests from this caller"},
	contract.CodeOverloaded:           {http.StatusServiceUnavailable, "The server takes no more requests now"},
	contract.CodeAuditUnavailable:     {http.StatusServiceUnavailable, "The audit log cannot be written"},
	contract.CodeInternal:             {http.StatusInternalServerError, "Internal error"},
}

func known(code contract.Code) bool {
	_, ok := kinds[code]
	return ok
}

// newProblem renders e, whose code is in the table.
func newProblem(e *contract.Error, requestID string) Problem {
	k := kinds[e.Code]
	if e.Malformed {
		k.status = http.StatusBadRequest
	}
	return Problem{
		Type:      problemBase + string(e.Code),
		Title:     k.title,
		Status:    k.status,
		Code:      e.Code,
		Detail:    e.Message,
		RequestID: requestID,
		Errors:    e.Details,
	}
}

// writeProblem answers with e and the headers its code asks for.
func (s *Server) writeProblem(x *exchange, e *contract.Error) error {
	p := newProblem(e, x.id)
	switch p.Code {
	case contract.CodeRateLimited:
		x.set("Retry-After", retryAfter(e.Limit))
		if e.Limit != nil {
			setLimit(x, e.Limit)
		}
	case contract.CodeOverloaded:
		x.set("Retry-After", "1")
	case contract.CodeAuditUnavailable:
		x.set("Retry-After", "5") // a disk is not freed in a second
	case contract.CodePayloadTooLarge:
		// The rest of the body is not worth reading.
		x.set("Connection", "close")
	}
	return s.sendProblem(x, p.Status, p.Code, p)
}

// writeUnsupported answers a request nobody may serve: policy B of 003 §5, a
// 4xx that says why and what could be asked instead.
func (s *Server) writeUnsupported(x *exchange, resp *contract.Response) error {
	e := &contract.Error{Code: contract.CodeNoEligibleAgent, Message: "no agent is eligible"}
	if why := resp.Data.Unsupported; why != nil {
		e.Message = why.Detail
	}
	p := UnsupportedProblem{
		Problem:  newProblem(e, resp.RequestID), // a stored answer is another request's
		Outcome:  resp.Status,
		Data:     resp.Data,
		Decision: resp.Decision,
	}
	return s.sendProblem(x, p.Status, p.Code, p)
}

func (s *Server) sendProblem(x *exchange, status int, code contract.Code, p any) error {
	x.outcome = string(code)
	x.set("Cache-Control", "no-store")
	return s.writeJSON(x, status, typeProblem, p)
}
