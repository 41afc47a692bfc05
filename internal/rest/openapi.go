package rest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/caprouter/caprouter/internal/httpserver"
)

// openapiJSON is openapi.yaml as JSON, with the files of examples/ inlined. A
// test compares it with its sources and, if run with -update, writes it.
//
//go:embed openapi.json
var openapiJSON []byte

// openapiDocument is the OpenAPI document as it is served.
type openapiDocument struct {
	json []byte
	etag string
}

func loadOpenAPI() openapiDocument {
	sum := sha256.Sum256(openapiJSON)
	return openapiDocument{json: openapiJSON, etag: `"` + hex.EncodeToString(sum[:16]) + `"`}
}

func (a *api) handleOpenAPI(c *httpserver.Context) error {
	c.SetHeader("Etag", a.openapi.etag)
	c.SetHeader("Cache-Control", "public, max-age=60")
	if matchesETag(c.Request.Header["If-None-Match"], a.openapi.etag) {
		c.WriteHeader(http.StatusNotModified)
		return nil
	}
	c.WriteBytes(http.StatusOK, httpserver.MediaTypeJSON, a.openapi.json)
	return nil
}

// matchesETag compares an If-None-Match header by weak comparison (RFC 9110
// §13.1.2).
func matchesETag(values []string, etag string) bool {
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
