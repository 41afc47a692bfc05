package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	routePath   = "/api/v1/route"
	openapiPath = "/openapi.json" // the longest response
)

const (
	routeBody  = `{"content":{"prompt":"Please do a code review of this python module"}}`
	dryRunBody = `{"content":{"prompt":"Please do a code review of this python module"},"options":{"dry_run":true}}`
)

// writeConfig writes configuration and registry into dir, and returns the path of the
// configuration. Only limits.max_in_flight limits the router: the limits below it are
// higher, and no model is called.
func writeConfig(dir, agentAddr string) (string, error) {
	registry := fmt.Sprintf(`version: 1
clients:
  reviewer:
    match: { intent: [code_review], domains: [python] }
    endpoint: { protocol: http, url: "http://%s/", timeout_ms: 60000, idempotent: true }
    max_in_flight: 100000
`, agentAddr)
	return process.WriteConfig(dir, fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: %s
registry: { file: %s, hot_reload: false }
classifier: { mode: lexical }
dispatch: { max_in_flight: 100000 }
limits: { max_in_flight: %d, classify: { rps: 0 } }
store: { sync: 100ms }
`, filepath.Join(dir, "data"), filepath.Join(dir, "capabilities.yaml"), inFlight), registry)
}

func formatPost(path, body string) []byte {
	return []byte(formatPostHeader(path, len(body)) + "\r\n" + body)
}

// formatPostHeader returns the headers without the empty line that ends them.
func formatPostHeader(path string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, length)
}

// formatGet returns the same request several times, for pipelining.
func formatGet(path string, times int) []byte {
	return []byte(strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", times))
}
