package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// minRead is the least room a read is given.
const minRead = 512

// readBody reads a whole request body of one of the media types into buf. It
// takes nothing compressed, and never more than contract.MaxBodyBytes into
// memory, whatever Content-Length says.
func readBody(x *exchange, buf *bytes.Buffer, accepted ...string) ([]byte, error) {
	if err := checkContent(x, accepted); err != nil {
		return nil, err
	}
	if x.req.ContentLength > contract.MaxBodyBytes {
		return nil, errTooLarge()
	}
	// Not buf.ReadFrom: it does not stop at a limit, and a limiting reader in
	// front of it costs an allocation a request.
	b := buf.AvailableBuffer()
	for {
		b = slices.Grow(b, minRead)
		n, err := x.req.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > contract.MaxBodyBytes:
			return nil, errTooLarge()
		case err == io.EOF:
			_, _ = buf.Write(b) // keeps what was grown for the next request
			return buf.Bytes(), nil
		case err != nil:
			return nil, unreadable(x, err)
		}
	}
}

func errTooLarge() error {
	return &contract.Error{
		Code:    contract.CodePayloadTooLarge,
		Message: fmt.Sprintf("at most %d bytes are taken", contract.MaxBodyBytes),
	}
}

// unreadable words a body that broke off. The connection is of no more use.
func unreadable(x *exchange, err error) error {
	x.set("Connection", "close")
	e := &contract.Error{Code: contract.CodeInvalidRequest, Malformed: true, Message: "the body cannot be read"}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Message = fmt.Sprintf("the body did not arrive within %s", readTimeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Message = "the body ended before its announced length"
	}
	return e
}

// checkContent looks at the headers that say what the body is.
func checkContent(x *exchange, accepted []string) error {
	h := x.req.Header
	for _, encoding := range h["Content-Encoding"] {
		if !strings.EqualFold(encoding, "identity") {
			x.set("Accept-Encoding", "identity") // RFC 9110 §12.5.3
			return &contract.Error{Code: contract.CodeUnsupportedMediaType, Message: "compressed bodies are not taken"}
		}
	}
	types := h["Content-Type"]
	if len(types) == 1 && (types[0] == accepted[0] || acceptable(types[0], accepted)) {
		return nil
	}
	return &contract.Error{
		Code:    contract.CodeUnsupportedMediaType,
		Message: "the Content-Type must be " + strings.Join(accepted, ", ") + ", in UTF-8",
	}
}

func acceptable(contentType string, accepted []string) bool {
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(accepted, mediaType) {
		return false
	}
	charset, named := params["charset"]
	return !named || strings.EqualFold(charset, "utf-8")
}

// decodeRequest reads the body of a routing request: first as strict JSON, whose
// first mistake ends it, then every field and header, whose mistakes are told
// together.
func (s *Server) decodeRequest(x *exchange) (*contract.Request, error) {
	buf := s.buffers.get()
	defer s.buffers.put(buf)
	body, err := readBody(x, buf, typeJSON)
	if err != nil {
		return nil, err
	}
	req := &contract.Request{RequestID: x.id}
	if err := strictjson.Unmarshal(body, req); err != nil {
		return nil, notStrict(err)
	}
	req.TraceID = traceID(x.req.Header)
	if details := check(req, x.req.Header); len(details) > 0 {
		return nil, &contract.Error{
			Code:    contract.CodeInvalidRequest,
			Message: "the request is not valid",
			Details: details,
		}
	}
	return req, nil
}

// notStrict words a body that is no JSON (400) or JSON that does not fit (422).
func notStrict(err error) error {
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
	return &contract.Error{
		Code:    contract.CodeInvalidRequest,
		Message: "the request is not valid",
		Details: []contract.ErrorDetail{{Pointer: e.Pointer, Detail: e.Detail}},
	}
}

// check returns all that is wrong with a decoded request, one detail a place.
func check(req *contract.Request, h http.Header) []contract.ErrorDetail {
	details := strictjson.Validate(req)
	if e := req.Validate(); e != nil {
		for _, d := range e.Details {
			if !slices.ContainsFunc(details, func(known contract.ErrorDetail) bool { return known.Pointer == d.Pointer }) {
				details = append(details, d)
			}
		}
	}
	return append(details, notAvailable(req, h)...)
}
