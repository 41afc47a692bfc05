package main

import (
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

// TestMain plays a role when it is started as one: in a test the program that
// starts itself again is the test.
func TestMain(m *testing.M) {
	if slices.Contains([]string{roleAgent, roleFloor}, os.Args[len(os.Args)-1]) {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}
