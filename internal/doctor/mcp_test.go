package doctor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/config"
)

// TestRun_MCP: the file is loaded as by serve, and no server is started.
func TestRun_MCP(t *testing.T) {
	const agent = modelRegistry + "  weather_agent: {match: {intent: [forecast], domains: [weather]}, endpoint: {protocol: mcp, action: weather.query}}\n"
	restricted := strings.Replace(agent, "endpoint:", "mcp_capabilities: ['weather:read'], endpoint:", 1)
	const lacking = modelRegistry + "  planner: {match: {intent: [plan], domains: [travel]}, mcp_capabilities: ['gis:read'], endpoint: {protocol: pull}}\n"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	good := fmt.Sprintf(`{"servers": [{"id": "weather", "command": %q}, {"id": "other", "url": "http://127.0.0.1:1/"}]}`, self)
	for name, tt := range map[string]struct {
		registry, file string // file "" = none
		level, detail  string
	}{
		"valid file":           {agent, good, LevelOK, "mcp.json: 2 servers"},
		"no file":              {modelRegistry, "", LevelSkip, "there is no mcp.json"},
		"invalid file":         {modelRegistry, `{"servers": [{"id": "a"}]}`, LevelFail, `server "a" needs a command or a url`},
		"unset variable":       {modelRegistry, `{"servers": [{"id": "a", "url": "http://h/${NOT_SET}"}]}`, LevelWarn, `server "a" is blocked: environment variable NOT_SET is not set`},
		"unknown command":      {modelRegistry, `{"servers": [{"id": "a", "command": "no-such-program"}]}`, LevelWarn, `"no-such-program" of server "a" is not found`},
		"relative command":     {modelRegistry, `{"servers": [{"id": "a", "command": "./no-such-program", "cwd": "/"}]}`, LevelWarn, `"./no-such-program" of server "a" is not found`},
		"other PATH":           {modelRegistry, `{"servers": [{"id": "a", "command": "no-such-program", "env": {"PATH": "/x"}}]}`, LevelOK, "1 server"},
		"disabled server":      {modelRegistry, `{"servers": [{"id": "a", "command": "no-such-program", "enabled": false}]}`, LevelOK, "1 server"},
		"unknown server":       {agent, `{"servers": [{"id": "wether", "url": "http://h/"}]}`, LevelWarn, "the action weather.query of agent weather_agent is of no server in mcp.json"},
		"forbidden server":     {restricted, `{"servers": [{"id": "weather", "url": "http://h/", "capabilities": ["sky:read"]}]}`, LevelWarn, "agent weather_agent declares no capability that the server of its action weather.query provides"},
		"capability provided":  {restricted, `{"servers": [{"id": "weather", "url": "http://h/", "capabilities": ["weather:*"]}]}`, LevelOK, "1 server"},
		"capability missing":   {lacking, `{"servers": [{"id": "a", "url": "http://h/", "capabilities": ["gis:write"]}, {"id": "b", "url": "http://h/", "capabilities": ["gis:*"], "enabled": false}]}`, LevelWarn, "no server in mcp.json provides the capability gis:read of agent planner"},
		"agent without a file": {agent, "", LevelWarn, "the action weather.query of agent weather_agent is of no server in mcp.json"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := diagnosable(t, tt.registry)
			t.Chdir(t.TempDir())
			if tt.file != "" {
				if err := os.WriteFile(config.DefaultMCPFile, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f := findings(t, cfg, noEnv)["mcp"]
			if f.Level != tt.level || !strings.Contains(f.Detail, tt.detail) || (f.Fix == "") != (f.Level == LevelOK || f.Level == LevelSkip) {
				t.Errorf("got %+v, want %s with %q", f, tt.level, tt.detail)
			}
		})
	}
	cfg := diagnosable(t, modelRegistry)
	cfg.MCP.File = "missing.json"
	if f := findings(t, cfg, noEnv)["mcp"]; f.Level != LevelFail || !strings.Contains(f.Detail, "missing.json") {
		t.Errorf("missing named file: got %+v, want a failure", f)
	}
}
