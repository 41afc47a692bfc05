package archtest

import "testing"

// TestArchitecture holds this module to every rule.
func TestArchitecture(t *testing.T) {
	files := readModule(t)
	rules := []struct {
		name string
		bad  []string
	}{
		{"imports point down", checkImports(levels(), arrows(), files)},
		{"each library has one home", checkLibraries(homes(), testPackages(levels()), files)},
		{"goroutines start in internal/run", checkGoroutines(goroutineExceptions(), files)},
		{"JSON goes through internal/strictjson", checkJSON(jsonExceptions(), files)},
		{"files are short", checkLength(files)},
		{"packages are documented", checkComments(files)},
		{"tests do not sleep", checkSleeps(files)},
		{"nothing runs on import", checkInit(files)},
		{"package variables do not change", checkState(stateExceptions(), files)},
		{"types, interfaces and packages are small", checkSizes(files)},
		{"names are standard terms", checkIdentifiers(replacedWords(), nameExceptions(), files)},
		{"names are more than one word", checkOneWordNames(0.15, files)},
		{"comments are plain", checkProse(proseLimits{"comments", 0.3, 5}, comments(files))},
		{"messages are plain", checkProse(proseLimits{"messages", 0.3, 0}, messages(files))},
		{"documents are plain", checkProse(proseLimits{"documents", 0.5, 3}, markdown(t))},
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, complaint := range rule.bad {
				t.Error(complaint)
			}
		})
	}
}

// The walk must find the module: rules over no files hold always.
func TestReadModuleFindsTheFiles(t *testing.T) {
	found := map[string]bool{}
	for _, f := range readModule(t) {
		found[f.path] = true
	}
	for _, want := range []string{"contract/doc.go", "internal/run/group.go", "internal/archtest/arch_test.go"} {
		if !found[want] {
			t.Errorf("did not find %s among %d files", want, len(found))
		}
	}
}

// testPackages returns the packages that are test code as a whole.
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
