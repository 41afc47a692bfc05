// Package testkit is what tests of several rooms share. Tests alone import it.
//
//	data, err := os.ReadFile(testkit.Shared(t, "corpora", "JSONTestSuite", "README.md"))
package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Shared returns the path of third-party test material, which is kept in a
// folder named shared beside the module and is no part of it. Where the material
// is not there, it skips the test and says so.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{moduleRoot(t), "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("third-party test material is not here: ../shared/%s", filepath.ToSlash(filepath.Join(elem...)))
	}
	return path
}

// moduleRoot is the nearest folder at or above the test's with a go.mod.
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
			t.Fatal("no go.mod at or above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}
