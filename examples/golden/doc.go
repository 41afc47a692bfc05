// Package golden is an example of routing tests in `go test`: cases.yaml contains
// requests with their expected outcome for the registry of the examples, and
// golden_test.go runs them. Copy both.
package golden
