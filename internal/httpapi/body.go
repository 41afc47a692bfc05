package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// minRead is the least room a read is given.
const minRead = 512

// readBody reads a whole request body of one of the media types into buf. It
// takes nothing compressed, and never more than most bytes into memory, whatever
// Content-Length says.
func readBody(x *exchange, buf *bytes.Buffer, most int, accepted ...string) ([]byte, error) {
	if err := checkContent(x, accepted); err != nil {
		return nil, err
	}
	if x.req.ContentLength > int64(most) {
		return nil, errTooLarge(most)
	}
	// Not buf.ReadFrom: it does not stop at a limit, and a limiting reader in
	// front of it costs an allocation a request.
	b := buf.AvailableBuffer()
	for {
		b = slices.Grow(b, minRead)
		n, err := x.req.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > most:
			return nil, errTooLarge(most)
		case err == io.EOF:
			_, _ = buf.Write(b) // keeps what was grown for the next request
			return buf.Bytes(), nil
		case err != nil:
			return nil, unreadable(x, err)
		}
	}
}

func errTooLarge(most int) error {
	return &contract.Error{
		Code:    contract.CodePayloadTooLarge,
		Message: fmt.Sprintf("at most %d bytes are taken", most),
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

// headerReader lets headers change a request that was decoded from body, and
// returns what is wrong with them.
type headerReader func(x *exchange, req *contract.Request, body []byte) []contract.ErrorDetail

// decodeRequest reads the body of a routing request: first as strict JSON, whose
// first mistake ends it, then every field and header, whose mistakes are told
// together.
func (s *Server) decodeRequest(x *exchange, headers headerReader) (*contract.Request, error) {
	buf := s.buffers.get()
	defer s.buffers.put(buf)
	body, err := readBody(x, buf, contract.MaxBodyBytes, typeJSON)
	if err != nil {
		return nil, err
	}
	req := &contract.Request{RequestID: x.id}
	if err := strictjson.Unmarshal(body, req); err != nil {
		return nil, notStrict(err)
	}
	req.TraceID = traceID(x.req.Header)
	var amiss []contract.ErrorDetail
	if headers != nil {
		amiss = headers(x, req, body)
	}
	return req, invalid(append(check(req), amiss...))
}

// decodeBody reads a body of at most the given size into v, which is checked as
// its tags say.
func (s *Server) decodeBody(x *exchange, most int, v any) error {
	buf := s.buffers.get()
	defer s.buffers.put(buf)
	body, err := readBody(x, buf, most, typeJSON)
	if err != nil {
		return err
	}
	if err := strictjson.Unmarshal(body, v); err != nil {
		return notStrict(err)
	}
	return invalid(strictjson.Validate(v))
}

// invalid is the error of a request in which something is wrong, nil when
// nothing is.
func invalid(details []contract.ErrorDetail) error {
	if len(details) == 0 {
		return nil
	}
	return &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid", Details: details}
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
	return invalid([]contract.ErrorDetail{{Pointer: e.Pointer, Detail: e.Detail}})
}

// check returns all that is wrong with a decoded request, one detail a place:
// what Validate says of a place knows more than a struct tag.
func check(req *contract.Request) []contract.ErrorDetail {
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
