package golden

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRunBench_InvalidFiles checks that errors contain the file, the line and how to correct it.
func TestRunBench_InvalidFiles(t *testing.T) {
	const good = "a b\tc\td\n"
	tests := []struct {
		name, file, content, want string
	}{
		{"empty", "train", "", "train: has no rows: write one text<TAB>intent<TAB>domain a line"},
		{"blank lines only", "train", "\n  \n", "train: has no rows"},
		{"no tab", "train", good + "\nx y\n", "train:3: has no tab: write text<TAB>intent<TAB>domain"},
		{"no domain", "test", good + "x y\ti\n", "test:2: has no column domain"},
		{"tab in the text", "test", "x\ty\ti\td\n", "test:1: has 4 columns, and there are 3, text<TAB>intent<TAB>domain: replace the tabs"},
		{"empty column", "oos", "x\t \td\n", "oos:1: column intent is empty: fill it in or delete the line"},
		{"not UTF-8", "val", good + "caf\xe9\ti\td\n", "val:2: is not UTF-8: convert"},
		{"no row in scope", "test", "x\toos\toos\n", "test: every row is oos"},
		{"no training row in scope", "train", "x\toos\toos\n", "train: no row is in scope"},
		{"not JSON", "tools", `{"tool":"a"`, "tools:1: is not a JSON object"},
		{"duplicate member", "tools", `{"tool":"a","tool":"b"}`, "tools:1: is not a JSON object of the right shape"},
		{"no tool", "tools", `{"description":"a"}`, "tools:1: names no tool"},
		{"queries as tools", "tools", `{"query":"a"}`, "tools:1: is a query with its own candidates: leave --test out"},
		{"no tools", "tools", "\n", "tools: has no rows"},
		{"tools as queries", "queries", `{"tool":"a"}`, "queries:1: is a tool: name the queries with --test"},
		{"no query", "queries", `{"candidates":[]}`, "queries:1: has no query"},
		{"no candidates", "queries", `{"query":"a","answer":[]}`, "queries:1: has no candidates"},
		{"candidate without a name", "queries", `{"query":"a","candidates":[{"name":"x"},{"description":"d"}]}`, "queries:1: candidate 2 has no name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := func(name string) string {
				p := filepath.Join(dir, name)
				content := good
				if name == tt.file {
					content = tt.content
				}
				writeFile(t, p, content)
				return p
			}
			cfg := BenchConfig{Train: path("train"), Test: path("test"), OutOfScope: path("oos"), Validation: path("val")}
			switch tt.file {
			case "tools":
				cfg = BenchConfig{Tools: path("tools"), Test: path("test")}
			case "queries":
				cfg = BenchConfig{Tools: path("queries")}
			}
			_, err := RunBench(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("missing file", func(t *testing.T) {
		_, err := RunBench(t.Context(), BenchConfig{Train: "absent.tsv", Test: "absent.tsv"})
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "absent.tsv") {
			t.Errorf("got %v, want an error with the missing file", err)
		}
	})
}

func TestReadLabelledRows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.tsv")
	writeFile(t, file, "\ufeffText\tIntent\tDomain\r\nolá, você\tgreet\tsmall talk\r\n\n")
	got, err := readLabelledRows(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]labelledRow{{"olá, você", "greet", "small talk"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScanLines(t *testing.T) {
	_, err := scanLines(strings.NewReader("short\n"+strings.Repeat("x", maxBenchLine+1)), func(int, string) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("got %v, want an error for the long line", err)
	}
}

// FuzzLabelledRow checks that a line has three non-empty columns or is an error.
func FuzzLabelledRow(f *testing.F) {
	for _, seed := range []string{"a\tb\tc", "", "a\tb", "a\tb\tc\td", "\t\t", "\xff\tb\tc", "olá\tgreet\tsmall talk"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		row, err := parseLabelledRow(line)
		if err != nil {
			return
		}
		if row.Text+"\t"+row.Intent+"\t"+row.Domain != line {
			t.Errorf("%q: got %+v, want an error", line, row)
		}
		for _, column := range []string{row.Text, row.Intent, row.Domain} {
			if strings.TrimSpace(column) == "" {
				t.Errorf("%q: got an empty column", line)
			}
		}
	})
}

// FuzzToolRow checks that accepted rows can be ranked.
func FuzzToolRow(f *testing.F) {
	for _, seed := range []string{
		`{"tool":"a","description":"b","merged":false}`, `{"query":"q","candidates":[{"name":"a"}],"answer":["a"]}`,
		`{}`, `[]`, `null`, `{"tool":null}`, `{"tool":"a","Tool":"b"}`, `{"query":"q","candidates":[{}]}`, "{", `{"query":"q","candidates":null}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, line string, ofQueries bool) {
		row, err := parseToolRow(line, ofQueries)
		switch {
		case err != nil && err.Error() == "":
			t.Errorf("%q: got an error without text", line)
		case err == nil && ofQueries && (row.Query == "" || len(row.Candidates) == 0):
			t.Errorf("%q: got %+v, want valid candidates", line, row)
		case err == nil && !ofQueries && row.Tool == "":
			t.Errorf("%q: got %+v, want a name", line, row)
		}
	})
}
