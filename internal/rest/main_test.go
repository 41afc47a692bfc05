package rest

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/internal/httpserver"
)

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder(httpserver.MediaTypeEvents, openapi3filter.PlainBodyDecoder)
	goleak.VerifyTestMain(m)
}
