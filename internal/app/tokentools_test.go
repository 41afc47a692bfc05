package app

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
)

// A token for an agent permits only tools of its capabilities.
func TestMintCallerToken_ChecksToolsOfAgent(t *testing.T) {
	var cfg config.Config
	startToolServer(t, newTokenIssuer(), func(c *config.Config) { cfg = *c })
	mcpFile := writeFile(t, "mcp.json", `{"servers":[
		{"id":"weather","command":["x"],"capabilities":["weather:read"]},{"id":"system","command":["x"],"capabilities":["system:read"]},
		{"id":"bare","command":["x"]}]}`)
	cfg.MCP.File = mcpFile
	for _, tt := range []struct{ agent, action, want string }{
		{"forecaster", "weather.query", ""},
		{"forecaster", "system.echo", "forecaster may not call system.echo: it declares weather:read, and the server system provides system:read"},
		{"forecaster", "bare.x", "forecaster may not call bare.x: it declares weather:read, and the server bare provides no capability"},
		{"forecaster", "gis.x", "no server of " + mcpFile + " has the action gis.x"},
		{"plain", "weather.query", "plain may call no tool: it declares no mcp_capabilities"},
		{"worker", "weather.query", "worker may call no tool: agents that register themselves declare no mcp_capabilities"},
	} {
		grant := TokenGrant{Subject: tt.agent, Scopes: []string{contract.ScopeTasksWork, contract.ScopeInvokePrefix + tt.action}, TTL: time.Minute}
		_, err := MintCallerToken(cfg, grant)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, %s: got error %v, want %q", tt.agent, tt.action, err, tt.want)
		}
	}
	if err := os.Remove(mcpFile); err != nil {
		t.Fatal(err)
	}
	caller := TokenGrant{Subject: "ana", Scopes: []string{contract.ScopeInvokePrefix + "gis.x"}, TTL: time.Minute}
	if _, err := MintCallerToken(cfg, caller); err != nil { // callers may have any scope
		t.Errorf("token for a caller: %v", err)
	}
}
