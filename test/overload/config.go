package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The paths that are asked for.
const (
	routePath   = "/api/v1/route"
	openapiPath = "/openapi.json" // the longest answer there is
)

// The bodies of the requests of ordinary callers.
const (
	routeBody  = `{"content":{"prompt":"Please do a code review of this python module"}}`
	dryRunBody = `{"content":{"prompt":"Please do a code review of this python module"},"options":{"dry_run":true}}`
)

// writeConfig writes configuration and registry into dir and returns the path of
// the former. Only limits.max_in_flight bounds the router: nothing below it has
// less room, and no model is asked.
func writeConfig(dir, agentAddr string, inFlight int) (string, error) {
	registry := fmt.Sprintf(`version: 1
clients:
  reviewer:
    match: { intent: [code_review], domains: [python] }
    endpoint: { protocol: http, url: "http://%s/", timeout_ms: 60000, idempotent: true }
    max_in_flight: 100000
`, agentAddr)
	config := fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: %s
registry: { file: %s, hot_reload: false }
classifier: { mode: lexical }
dispatch: { max_in_flight: 100000 }
limits: { max_in_flight: %d }
store: { sync: 100ms }
`, filepath.Join(dir, "data"), filepath.Join(dir, "capabilities.yaml"), inFlight)
	path := filepath.Join(dir, "caprouter.yaml")
	for file, content := range map[string]string{filepath.Join(dir, "capabilities.yaml"): registry, path: config} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	return path, nil
}

// post is a request as it goes over the wire.
func post(path, body string) []byte {
	return []byte(postHead(path, len(body)) + "\r\n" + body)
}

// postHead is one without the empty line that ends the headers.
func postHead(path string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, length)
}

// get is a request without a body, as often as it is wanted.
func get(path string, times int) []byte {
	return []byte(strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", times))
}
