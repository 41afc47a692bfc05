// Package golden is an example of routing tests in a `go test` of one's own:
// cases.yaml says what shall become of requests over the registry of the
// examples, golden_test.go runs it. Copy both.
package golden
