package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// minRead is the least room a read is given.
const minRead = 512

// bodySpec is what a route takes: how much, of which media types. The first type
// is the one that is meant.
type bodySpec struct {
	most     int // bytes
	types    []string
	optional bool // no body at all will do, whatever its type
}

// receive reads the whole body of a request, before it is given a place in a
// lane: who sends slowly keeps nobody but himself waiting. handlers find it in
// x.body until they give it back with release.
func (s *Server) receive(x *exchange, spec *bodySpec) error {
	if spec.optional && x.req.ContentLength == 0 { // -1 where the length is not known
		return nil
	}
	if err := checkContent(x, spec.types); err != nil {
		return err
	}
	if x.req.ContentLength > int64(spec.most) {
		return errTooLarge(spec.most)
	}
	x.buf = s.buffers.get()
	body, err := s.readBody(x, spec.most)
	if err != nil {
		return err
	}
	x.body, x.arrived = body, true
	return nil
}

// refusedBody is how long the body of a request that was refused may take to
// arrive. net/http reads some of it before it answers, so that who sends first and
// reads then gets the answer; it would wait for a slow one until readTimeout.
const refusedBody = 5 * time.Second

// hurry gives the rest of a body that nobody will look at little time.
func (x *exchange) hurry() {
	if !x.arrived && x.req.ContentLength != 0 {
		// Writers without a connection, in tests, have no deadline to set.
		_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Now().Add(refusedBody))
	}
}

// release gives back what receive took. Strings that were decoded stay.
func (s *Server) release(x *exchange) {
	s.receiving.give(x.payer(), x.held)
	x.held, x.body = 0, nil
	if x.buf != nil {
		s.buffers.put(x.buf)
		x.buf = nil
	}
}

// What all bodies that were received, and not yet decoded, hold of memory
// together, and those of one caller.
const (
	maxReceiving   = 256 << 20
	shareReceiving = maxReceiving / 8
)

// readBody reads a body that has not been announced to be too long. It takes
// nothing compressed, and never more than most bytes into memory, whatever
// Content-Length says.
func (s *Server) readBody(x *exchange, most int) ([]byte, error) {
	// Not buf.ReadFrom: it does not stop at a limit, and a limiting reader in
	// front of it costs an allocation a request.
	b := x.buf.AvailableBuffer()
	for {
		had := cap(b)
		b = slices.Grow(b, minRead)
		if grown := int64(cap(b) - had); grown > 0 { // what a buffer of the pool has counts with the connection
			if !s.receiving.take(x.payer(), grown) {
				return nil, errOverloaded
			}
			x.held += grown
		}
		n, err := x.req.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > most:
			return nil, errTooLarge(most)
		case err == io.EOF:
			_, _ = x.buf.Write(b) // keeps what was grown for the next request
			return x.buf.Bytes(), nil
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
	defer s.release(x)
	req := &contract.Request{RequestID: x.id}
	if err := strictjson.Unmarshal(x.body, req); err != nil {
		return nil, notStrict(err)
	}
	req.TraceID = traceID(x.req.Header)
	var amiss []contract.ErrorDetail
	if headers != nil {
		amiss = headers(x, req, x.body)
	}
	return req, invalid(append(check(req), amiss...))
}

// decodeBody reads the body into v, which is checked as its tags say.
func (s *Server) decodeBody(x *exchange, v any) error {
	defer s.release(x)
	if err := strictjson.Unmarshal(x.body, v); err != nil {
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
