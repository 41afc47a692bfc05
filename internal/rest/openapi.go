package rest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// openapiJSON is openapi.yaml as JSON, with the files of examples/ in it. A test
// holds it to its sources and, run with -update, writes it.
//
//go:embed openapi.json
var openapiJSON []byte

// document is the OpenAPI document as it is served.
type document struct {
	json []byte
	etag string
}

func loadDocument() document {
	sum := sha256.Sum256(openapiJSON)
	return document{json: openapiJSON, etag: `"` + hex.EncodeToString(sum[:16]) + `"`}
}

func (s *Server) handleOpenAPI(x *exchange, _ echo.Context) error {
	x.set("Etag", s.openapi.etag)
	x.set("Cache-Control", "public, max-age=60")
	if matches(x.req.Header["If-None-Match"], s.openapi.etag) {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	x.writeBytes(http.StatusOK, typeJSON, s.openapi.json)
	return nil
}

// matches compares an If-None-Match header weakly, as RFC 9110 §13.1.2 asks.
func matches(values []string, etag string) bool {
	for _, value := range values {
		for candidate := range strings.SplitSeq(value, ",") {
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
			if candidate == etag || candidate == "*" {
				return true
			}
		}
	}
	return false
}
