// Package testkit contains helpers for tests of several packages. Only tests
// import it.
//
//	data, err := os.ReadFile(testkit.Shared(t, "corpora", "JSONTestSuite", "README.md"))
package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Shared returns the path of third-party test data, in a directory named shared
// next to the module. If the data is missing, it skips the test.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{moduleRoot(t), "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("third-party test material is not here: ../shared/%s", filepath.ToSlash(filepath.Join(elem...)))
	}
	return path
}

// SkipWithRace skips a test that only computes, because the race detector makes it about
// ten times slower and would find nothing. It must be the first statement of the test:
// .ci/run finds these tests by it, and runs them without the race detector.
func SkipWithRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("only computes: runs without the race detector")
	}
}

// RaceSettings returns the settings of the race detector as variables for an MCP server, which
// inherits no others. Without atexit_sleep_ms, which .ci/run sets, each process of a test binary
// waits a second before it ends.
func RaceSettings() map[string]string { return map[string]string{"GORACE": os.Getenv("GORACE")} }

// moduleRoot returns the nearest directory with a go.mod, at or above the
// working directory.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod at or above the test's directory")
		}
		dir = filepath.Dir(dir)
	}
}
