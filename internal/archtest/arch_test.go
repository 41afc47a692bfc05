package archtest

import (
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// TestArchitecture checks all rules of this module.
func TestArchitecture(t *testing.T) {
	testkit.SkipWithRace(t)
	files := readModule(t)
	rules := []struct {
		name string
		bad  []string
	}{
		{"imports point down", checkImports(levels(), importExceptions(), files)},
		{"libraries are imported by the packages of their row", checkLibraries(libraryRules(), testPackages(levels()), files)},
		{"goroutines start in internal/run", checkGoroutines(goroutineExceptions(), files)},
		{"JSON goes through internal/strictjson", checkJSON(jsonExceptions(), files)},
		{"files are short", checkLength(files)},
		{"packages are documented", checkComments(files)},
		{"tests do not sleep", checkSleeps(files)},
		{"no code runs on import", checkInit(files)},
		{"package variables do not change", checkState(stateExceptions(), files)},
		{"types, interfaces and packages are small", checkSizes(files)},
		{"names are standard terms", checkIdentifiers(replacedWords(), nameExceptions(), files)},
		{"names are more than one word", checkOneWordNames(0.15, files)},
		{"comments are plain", checkProse(proseLimits{"comments", 0.3, 5}, commentProse(files))},
		{"messages are plain", checkProse(proseLimits{"messages", 0.3, 0}, messageProse(files))},
		{"documents are plain", checkProse(proseLimits{"documents", 0.5, 3}, documentProse(t))},
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, message := range rule.bad {
				t.Error(message)
			}
		})
	}
}

// readModule must find the files of the module, because rules without files always pass.
func TestReadModule_FindsFiles(t *testing.T) {
	found := map[string]bool{}
	for _, f := range readModule(t) {
		found[f.path] = true
	}
	for _, want := range []string{"contract/doc.go", "internal/run/group.go", "internal/archtest/arch_test.go"} {
		if !found[want] {
			t.Errorf("got %d files without %s, want it", len(found), want)
		}
	}
}

// testPackages returns the packages that contain test code only.
func testPackages(table []level) []string {
	var out []string
	for _, l := range table {
		for _, r := range l.rows {
			if r.testsOnly {
				out = append(out, r.pkg)
			}
		}
	}
	return out
}
