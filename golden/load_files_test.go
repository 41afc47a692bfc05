package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loadedIDs loads paths below the directory, and returns the ids.
func loadedIDs(t *testing.T, dir string, paths ...string) []string {
	t.Helper()
	full := make([]string, len(paths))
	for i, path := range paths {
		full[i] = filepath.Join(dir, path)
	}
	cases, err := LoadCases(full, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range cases {
		ids = append(ids, cases[i].ID)
	}
	return ids
}

func oneCase(id string) string {
	return "cases:\n  - { id: " + id + ", input: x, expect: { outcome: dispatch } }\n"
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skipf("no symbolic links on this system: %v", err)
	}
}

func TestLoadCases_FollowsLinks(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"g/a.yaml":      oneCase("a"),
		"g/sub/b.yaml":  oneCase("b"),
		"other/c.yaml":  oneCase("c"),
		"single/d.yaml": oneCase("d"),
		"read.me":       "",
	})
	link(t, "g", filepath.Join(dir, "gl"))
	link(t, "../other", filepath.Join(dir, "g", "linked"))
	link(t, "../single/d.yaml", filepath.Join(dir, "g", "z.yaml"))
	link(t, "..", filepath.Join(dir, "g", "sub", "up"))        // a cycle
	link(t, "nowhere", filepath.Join(dir, "g", "dangling.md")) // not a case file
	want := []string{"a", "c", "b", "d"}
	for _, path := range []string{"g", "gl"} {
		if diff := cmp.Diff(want, loadedIDs(t, dir, path)); diff != "" {
			t.Errorf("%s: ids (-want +got):\n%s", path, diff)
		}
	}
	link(t, "nowhere", filepath.Join(dir, "g", "gone.yaml"))
	if _, err := LoadCases([]string{filepath.Join(dir, "g")}, nil); err == nil || !strings.Contains(err.Error(), "gone.yaml") {
		t.Errorf("got %v, want an error for the dangling link gone.yaml", err)
	}
}

func TestLoadCases_ExtensionsInAnyCase(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"A.YAML":               oneCase("a"),
		"b.Yml":                oneCase("b"),
		"c.CSV":                "input,expected_agent,id\nx,,c\n",
		"d.JSONL":              `{"id":"d","input":"x","expect":{"outcome":"dispatch"}}`,
		"e.CASSETTE.JSONL":     "not a case\n",
		".hidden.yaml":         "not a case\n",
		"._A.YAML":             "not a case\n",
		"notes.txt":            "not a case\n",
		".directory/case.yaml": "not a case\n",
	})
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, loadedIDs(t, dir, ".")); diff != "" {
		t.Errorf("directory: ids (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c"}, loadedIDs(t, dir, "c.CSV")); diff != "" {
		t.Errorf("file: ids (-want +got):\n%s", diff)
	}
}

func TestLoadCases_ReadsFileOnce(t *testing.T) {
	dir := writeFiles(t, map[string]string{"g/a.yaml": oneCase("a"), "g/b.yaml": oneCase("b")})
	if diff := cmp.Diff([]string{"b", "a"}, loadedIDs(t, dir, "g/b.yaml", "g", "g/../g/a.yaml")); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

func TestAssignIDs_IncludesDirectory(t *testing.T) {
	row := "input,expected_agent\nsing,\n"
	dir := writeFiles(t, map[string]string{"pt/x.csv": row, "es/x.csv": row})
	if diff := cmp.Diff([]string{"es-x-6342d064", "pt-x-6342d064"}, loadedIDs(t, dir, ".")); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}
