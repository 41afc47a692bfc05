package app

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestMCP_FollowsFile(t *testing.T) {
	t.Parallel()
	path, change := useMCP(t, samples("weather"))
	s := startServer(t, "clients: {}\n", change)
	waitForServers(s, "weather")
	pid := processOf(t, "weather")
	replace := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(`{"servers":[{"id":"weather","comand":"x"}]}`)
	testkit.Eventually(t, "the file is reported", func() bool {
		var ready rest.Readiness
		if err := json.Unmarshal([]byte(s.get("/readyz")), &ready); err != nil {
			t.Fatal(err)
		}
		return ready.Status == rest.ReadinessDegraded && ready.MCP.Stale && strings.Contains(ready.MCP.Error, `"comand"`)
	})
	if metrics := s.get("/metrics"); !strings.Contains(metrics, "caprouter_mcp_registry_stale 1") {
		t.Error("got a stale file without the gauge set")
	}
	s.mcp("POST", "/invoke", `{"action":"weather.query","input":{"ubicacion":"Lugo"}}`, 200, nil) // the last valid one
	replace(samples("weather", "system"))
	waitForServers(s, "system", "weather")
	if got := processOf(t, "weather"); got != pid {
		t.Errorf("unchanged server: got pid %d, want %d", got, pid)
	}
	replace(samples("system"))
	testkit.Eventually(t, "the removed server has ended", func() bool { return !isAlive(pid) })
	if ready := s.get("/readyz"); !strings.Contains(ready, `"status":"ready"`) {
		t.Errorf("got %s, want ready", ready)
	}
}

func TestMCP_RejectsUnusableFile(t *testing.T) {
	for name, tt := range map[string]struct{ path, want string }{
		"named and missing": {filepath.Join(t.TempDir(), "none.json"), "none.json"},
		"invalid":           {writeFile(t, "mcp.json", `{"servers":[{"id":"a"}]}`), "mcp.json:1:13"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Listen, cfg.DataDir, cfg.MCP.File = "127.0.0.1:0", filepath.Join(t.TempDir(), "data"), tt.path
			cfg.Registry.File = writeFile(t, "capabilities.yaml", "clients: {}\n")
			s, err := Start(t.Context(), cfg, Options{LogOutput: io.Discard, LookupEnv: noEnv})
			if err == nil {
				_ = s.Wait()
				t.Fatal("got a running server, want an error")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %q, want %q in it", err, tt.want)
			}
		})
	}
}
