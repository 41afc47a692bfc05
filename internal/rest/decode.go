package rest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// headerOption applies headers to a request that was decoded from body, and
// returns the mistakes in them.
type headerOption func(c *httpserver.Context, req *contract.Request, body []byte) []contract.ErrorDetail

// ignoreHeaders is a headerOption.
func ignoreHeaders(*httpserver.Context, *contract.Request, []byte) []contract.ErrorDetail { return nil }

// decodeRequest decodes and validates the body of a routing request. Mistakes of decoding are
// reported together; if there are none, those of validation in fields and headers.
func decodeRequest(c *httpserver.Context, applyHeaders headerOption) (*contract.Request, error) {
	defer c.ReleaseBody()
	req := &contract.Request{RequestID: c.ID}
	if err := strictjson.Unmarshal(c.Body(), req); err != nil {
		return nil, decodeError(err, c.Body(), req)
	}
	req.TraceID = c.TraceID()
	fromHeaders := applyHeaders(c, req, c.Body())
	return req, invalidRequest(append(validateRequest(req), fromHeaders...))
}

// decodeBody decodes the body into v and validates v by its struct tags.
func decodeBody(c *httpserver.Context, v any) error {
	defer c.ReleaseBody()
	if err := strictjson.Unmarshal(c.Body(), v); err != nil {
		return decodeError(err, c.Body(), v)
	}
	return invalidRequest(strictjson.Validate(v))
}

// invalidRequest returns an error with the details, or nil if there are none.
func invalidRequest(details []contract.ErrorDetail) error {
	if len(details) == 0 {
		return nil
	}
	return contract.InvalidRequestDetails(details)
}

// decodeError maps an error of decoding body into v: a body that is not JSON is malformed
// (400), JSON that does not fit the type is an invalid request (422).
func decodeError(err error, body []byte, v any) error {
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		return fmt.Errorf("decode a request: %w", err)
	}
	if e.Syntax {
		return &contract.Error{
			Code:      contract.CodeInvalidRequest,
			Malformed: true,
			Message:   "the body " + e.Detail,
		}
	}
	invalid := contract.InvalidRequestDetails(nil)
	for _, mistake := range strictjson.Mistakes(body, v, e) {
		invalid.Add(mistake.Pointer, mistake.Detail)
	}
	return invalid
}

// validateRequest returns the mistakes in a request, one per JSON pointer. If
// both the struct tags and Request.Validate report one, the latter wins, because
// its text is more specific.
func validateRequest(req *contract.Request) []contract.ErrorDetail {
	details := strictjson.Validate(req)
	e := req.Validate()
	if e == nil {
		return details
	}
	for _, d := range e.Details {
		at := slices.IndexFunc(details, func(known contract.ErrorDetail) bool { return known.Pointer == d.Pointer })
		if at < 0 {
			details = append(details, d)
			continue
		}
		details[at] = d
	}
	return details
}
