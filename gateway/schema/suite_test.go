package schema

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/caprouter/caprouter/internal/testkit"
)

// TestSuite runs the cases of JSON-Schema-Test-Suite for 2020-12. Its schemas and values must not
// exceed a limit.
func TestSuite(t *testing.T) {
	dir := testkit.Shared(t, "corpora", "JSON-Schema-Test-Suite")
	others := readRemotes(t, filepath.Join(dir, "remotes"))
	files, err := filepath.Glob(filepath.Join(dir, "tests", "draft2020-12", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, path := range files {
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			s, err := compile(g.Schema, others)
			if err != nil {
				t.Errorf("%s, %s: %v", filepath.Base(path), g.Description, err)
				continue
			}
			for _, tt := range g.Tests {
				cases++
				if err := s.Validate(tt.Data); (err == nil) != tt.Valid {
					t.Errorf("%s, %s, %s: got %v, want valid = %v", filepath.Base(path), g.Description, tt.Description, err, tt.Valid)
				}
			}
		}
	}
	if want := 1299; cases < want {
		t.Errorf("ran %d cases, want at least %d", cases, want)
	}
}

// readRemotes returns the remote documents that the schemas of the suite refer to, by URL.
func readRemotes(t *testing.T, dir string) map[string]any {
	others := map[string]any{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		others["http://localhost:1234/"+filepath.ToSlash(relative)] = v
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return others
}
