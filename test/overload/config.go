package main

import (
	"errors"
	"fmt"
	"os"
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

// smallStore is the minimum of store.retention.max_bytes.
const smallStore = "64MiB"

// tokenKeyID names the key of the callers' tokens.
const tokenKeyID = "load"

// writeTenantConfig writes the configuration of a router with the default limits, a
// small store, and callers of several tenants.
func writeTenantConfig(dir, agentAddr string, secret tokenSecret) (string, error) {
	registry := fmt.Sprintf(`version: 1
clients:
  reviewer:
    match: { intent: [code_review], domains: [python] }
    endpoint: { protocol: http, url: "http://%s/", timeout_ms: 60000 }
    max_in_flight: 1024
fallback: { policy: C }
`, agentAddr)
	path, err := process.WriteConfig(dir, fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: %s
registry: { file: %s, hot_reload: false }
classifier: { mode: lexical }
auth: { mode: jwt, keys: [{ kid: %s, alg: HS256, secret_file: %s }] }
store: { retention: { max_bytes: %s } }
`, filepath.Join(dir, "data"), filepath.Join(dir, "capabilities.yaml"), tokenKeyID, filepath.Join(dir, "secret"), smallStore), registry)
	return path, errors.Join(err, os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o600))
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
