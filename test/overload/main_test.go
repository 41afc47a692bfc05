package main

import (
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs a role if the test binary was started as one.
func TestMain(m *testing.M) {
	if slices.Contains([]string{roleAgent, roleBaseline}, os.Args[len(os.Args)-1]) {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}
