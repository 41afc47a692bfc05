package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs a role if the test binary was started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == roleStore {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}
