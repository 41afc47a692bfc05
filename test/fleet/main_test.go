package main

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunFleet_FindsNoViolation(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a router")
	}
	var out strings.Builder
	if err := runFleet(t.Context(), options{agents: 300, joining: 50, duration: 3 * time.Second}, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}
