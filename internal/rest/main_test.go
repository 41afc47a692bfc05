package rest

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder(typeEvents, openapi3filter.PlainBodyDecoder)
	goleak.VerifyTestMain(m)
}
