package main

import (
	"context"
	"os"
	"path"
	"slices"
	"syscall"
	"testing"

	"github.com/caprouter/caprouter/test/internal/process"
	"github.com/caprouter/caprouter/test/internal/workload"
)

// plantedErrors are errors of a router, by name. The test builds one router with all
// of them, and a variable of the environment selects one.
func plantedErrors() []process.Patch {
	const module = "github.com/caprouter/caprouter/internal/"
	patches := []process.Patch{
		{Package: module + "history", File: "journal.go", Old: "\twritten := make(chan error, 1)\n", New: "\tif planted(\"no decision record\") {\n\t\treturn nil\n\t}\n\twritten := make(chan error, 1)\n"},
		{Package: module + "history", File: "journal.go", Old: "\treturn j.appendRecord(ctx, r.record, resilience.RetryConfig{\n", New: "\tif planted(\"no outcome record\") {\n\t\treturn nil\n\t}\n\treturn j.appendRecord(ctx, r.record, resilience.RetryConfig{\n"},
		{Package: module + "execution", File: "resume.go", Old: "\t\tcase task.Idempotent &&", New: "\t\tcase !planted(\"a resumed idempotent task is given up\") && task.Idempotent &&"},
		{Package: module + "store/natsserver", File: "server.go", Old: "c.SyncEvery == 0,\n", New: "c.SyncEvery == 0 && !planted(\"no sync\"),\n"},
	}
	for _, pkg := range []string{"history", "execution", "store/natsserver"} {
		patches = append(patches, process.Patch{Package: module + pkg, File: "planted.go", New: "package " + path.Base(pkg) + `

import "os"

func planted(name string) bool { return os.Getenv("` + plantedVariable + `") == name }
`})
	}
	return patches
}

const plantedVariable = "CRASH_TEST_PLANTED"

// Builds the router once for all tests that kill it. The driver itself is a command,
// and .ci/run makes a short run of it.
func TestTestbed_WithRouter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the router and kills it several times")
	}
	binary, err := process.Build(t.Context(), t.TempDir(), append(syncRecorder(), plantedErrors()...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, binary string)
	}{
		{"lost data is found", testLostData},
		{"interrupted run stops the router", testInterrupted},
		{"planted errors are found", testPlantedErrors},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, binary) })
	}
}

// The checks must find a router that loses its data.
func testLostData(t *testing.T, binary string) {
	w, err := newTestbed(t.Context(), testbedConfig{binary: binary, dir: t.TempDir(), seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.startRouters(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !w.load.Callers.SubmitOrder(t.Context(), workload.NewOrder("code review of python module", "key", workload.RequestTimeoutMS, true)) {
		t.Fatal("the request was rejected, want it accepted")
	}
	if err := w.killRouter(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(workload.DataDir(w.dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.startRouters(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.load.FetchAll(t.Context())
	if found := workload.Violations(w.ledger.RunChecks()); len(found) != 1 || found["accepted with 202, then lost or without an end"] == nil {
		t.Errorf("got %v, want one lost request", found)
	}
}

// The checks must find each planted error, and no error in an unmodified router. If an outcome
// was not recorded, it is missing at the end, or the next start has recorded another one.
func testPlantedErrors(t *testing.T, binary string) {
	for planted, anyOf := range map[string][]string{
		"":                                      nil,
		"no decision record":                    {"a dispatched request without exactly one decision record"},
		"no outcome record":                     {"a request without exactly one outcome record", "the audit log and the response differ in the status"},
		"a resumed idempotent task is given up": {"outcome_unknown of an agent that is idempotent"},
		"no sync":                               {"accepted with 202, then lost or without an end"},
	} {
		t.Run(planted, func(t *testing.T) {
			t.Setenv(plantedVariable, planted)
			r, err := runCycles(t.Context(), planted, 8, testbedConfig{binary: binary, dir: t.TempDir(), seed: 1, powerFails: true})
			if err != nil {
				t.Fatal(err)
			}
			found := workload.Violations(r.Checks)
			isFound := slices.ContainsFunc(anyOf, func(check string) bool { return found[check] != nil })
			if anyOf == nil && len(found) > 0 || anyOf != nil && !isFound {
				t.Errorf("got violations %v, want one of %q", found, anyOf)
			}
		})
	}
}

func testInterrupted(t *testing.T, binary string) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := newTestbed(ctx, testbedConfig{binary: binary, dir: t.TempDir(), seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.startRouters(ctx); err != nil {
		t.Fatal(err)
	}
	pid := w.replicas[0].Process.PID()
	cancel()
	if err := w.close(); err != nil {
		t.Errorf("close: got %v, want nil", err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d of the router is still running", pid)
	}
}
