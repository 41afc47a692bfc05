// Package serversuite tests registries of servers.
package serversuite

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/orchestrator"
)

// Check is the suite of every orchestrator.ServerRegistry. The registry has
// the server files with the tools read and write, and the server mail with the tool send.
func Check(t testing.TB, r orchestrator.ServerRegistry) {
	t.Helper()
	servers, err := r.ListServers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range servers {
		tools, err := r.ListTools(t.Context(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			def, err := r.GetToolSchema(t.Context(), s.Name, tool)
			if err != nil || def.Action() != s.Name+"."+tool {
				t.Errorf("%s.%s: got %+v and error %v", s.Name, tool, def, err)
			}
			names = append(names, def.Action())
		}
	}
	if diff := cmp.Diff([]string{"files.read", "files.write", "mail.send"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if _, err := r.ListTools(t.Context(), "other"); !errors.Is(err, orchestrator.ErrNotFound) {
		t.Errorf("unknown server: got error %v, want %v", err, orchestrator.ErrNotFound)
	}
	if _, err := r.GetToolSchema(t.Context(), "files", "other"); !errors.Is(err, orchestrator.ErrNotFound) {
		t.Errorf("unknown tool: got error %v, want %v", err, orchestrator.ErrNotFound)
	}
}
