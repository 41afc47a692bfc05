//go:build unix

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A server that ends at once is started at most 12 times in 5 minutes. The test adds up the delays
// between the attempts instead of waiting.
func TestGateway_CrashLoopStartsFewProcesses(t *testing.T) {
	crash := testServer("crash", "crash", "-")
	starts := filepath.Join(t.TempDir(), "starts")
	crash.Env = map[string]string{"STARTS": starts}
	var elapsed time.Duration
	ended := make(chan struct{})
	cfg := gateway.Config{}.WithWait(func(ctx context.Context, d time.Duration) {
		if elapsed += d; elapsed > 5*time.Minute {
			close(ended)
			<-ctx.Done()
		}
	})
	startGateway(t, cfg, crash)
	testkit.WaitClosed(t, ended)
	data, err := os.ReadFile(starts)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, []byte("\n")); n < 5 || n > 12 {
		t.Errorf("got %d processes in 5 minutes, want 5 to 12", n)
	}
}

// After 100 reloads the number of open files and processes is the same.
func TestReload_LeaksNothing(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("the system does not list open files")
	}
	server := serve(t, streamableHTTP(t, newSystem, nil))
	file := func(n int) *mcpfile.File {
		local := testServer("local", "sample", "system")
		local.Env["N"] = strconv.Itoa(n)
		remote := mcpfile.Server{ID: "remote", Transport: mcpfile.HTTP, URL: server.URL, Headers: map[string]string{"X-N": strconv.Itoa(n)}}
		return &mcpfile.File{Servers: []mcpfile.Server{local, remote, testServer("same", "sample", "system")}}
	}
	g := startGateway(t, gateway.Config{}, file(0).Servers...)
	reload := func(n int) {
		t.Helper()
		if _, err := g.Reload(file(n)); err != nil {
			t.Fatal(err)
		}
		call(t, g, "local.echo", `{"text":"x"}`)
		call(t, g, "remote.echo", `{"text":"x"}`)
	}
	reload(1)
	const children = 4 // two servers with their supervisors
	testkit.Eventually(t, "the first servers have ended", func() bool { return len(descendants(t)) == children })
	files := openFiles(t)
	for n := 2; n <= 31; n++ {
		reload(n)
	}
	testkit.Eventually(t, "the replaced processes have ended", func() bool { return len(descendants(t)) == children })
	// A few connections of the HTTP client and server may be open at any moment.
	testkit.Eventually(t, "the files are closed", func() bool { return openFiles(t) <= files+5 })
	g.Reset()
	testkit.Eventually(t, "the processes have ended after Reset", func() bool { return len(descendants(t)) == 0 })
}

func TestClose_LeavesNoProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("the system does not list processes")
	}
	silent := testServer("b", "silent", "-")
	silent.Timeouts.Connect = 300
	t.Run("open", func(t *testing.T) {
		g := startGateway(t, gateway.Config{}, testServer("a", "difficult", "-"), silent, testServer("c", "crash", "-"))
		if err := syscall.Kill(pidOfServer(t, g, "a"), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	})
	if left := descendants(t); len(left) != 0 {
		t.Errorf("got processes %v after Close, want none", left)
	}
}

func pidOfServer(t *testing.T, g *gateway.Gateway, id string) int {
	t.Helper()
	pid, err := strconv.Atoi(call(t, g, id+".pid", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// descendants returns the child processes of this one and their children, including zombies.
func descendants(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	var found []int
	for pid := range parents {
		for at := parents[pid]; at > 1; at = parents[at] {
			if at == os.Getpid() {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// A call that may have been executed is not sent again, for any failure.
func TestInvoke_ExecutesAtMostOnce(t *testing.T) {
	t.Parallel()
	for _, failure := range []string{"exit", "hang", "stop"} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			executed := filepath.Join(t.TempDir(), "executed")
			server := testServer("d", "difficult", "-")
			server.Timeouts.Call = 500
			server.Env = map[string]string{"EXECUTED": executed}
			g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond}, server)
			_, err := g.Invoke(t.Context(), contract.Action{Action: "d.count", Input: json.RawMessage(fmt.Sprintf(`{"then":%q}`, failure))})
			if codeOf(err) != "OUTCOME_UNKNOWN" {
				t.Errorf("got %v, want OUTCOME_UNKNOWN", err)
			}
			if got := countLines(t, executed); got != 1 {
				t.Errorf("got %d executions, want 1", got)
			}
		})
	}
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		executed := filepath.Join(t.TempDir(), "executed")
		system := newSystem(nil)
		system.AddTool(&mcp.Tool{Name: "count", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, appendLine(executed)
		})
		handler := streamableHTTP(t, func(*http.Request) *mcp.Server { return system }, nil)
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"tools/call"`)) {
				handler.ServeHTTP(discard{header: http.Header{}}, r)
				panic(http.ErrAbortHandler) // the reply is lost
			}
			handler.ServeHTTP(w, r)
		}))
		g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond}, mcpfile.Server{ID: "system", Transport: mcpfile.HTTP, URL: server.URL})
		_, err := g.Invoke(t.Context(), contract.Action{Action: "system.count"})
		if codeOf(err) != "OUTCOME_UNKNOWN" {
			t.Errorf("got %v, want OUTCOME_UNKNOWN", err)
		}
		if got := countLines(t, executed); got != 1 {
			t.Errorf("got %d executions, want 1", got)
		}
	})
}

// discard is a ResponseWriter whose response is lost.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}

func appendLine(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, "executed")
	return err
}

func countLines(t *testing.T, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// Secrets of the environment, the headers and the arguments are in no output.
func TestGateway_RevealsNoSecret(t *testing.T) {
	const canary = "canary-1"
	crash := testServer("crash", "crash", "--api-key", "other-canary-1")
	crash.Env = map[string]string{"CRASH_TOKEN": "env-canary-1 other-canary-1", "NAME": "env-canary-1"}
	echoing := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprint(r.Header), http.StatusBadRequest)
	}))
	remote := mcpfile.Server{
		ID: "remote", Transport: mcpfile.HTTP, URL: echoing.URL + "/?key=" + canary,
		Headers: map[string]string{"X-Api-Key": canary}, Auth: &mcpfile.Auth{Type: "bearer", Env: "CANARY"},
	}
	rest := mcpfile.Server{ID: "rest", Transport: mcpfile.REST, URL: "http://" + testkit.RefusingAddress + "/?key=${CANARY}", Actions: []mcpfile.Action{{Name: "x"}}}
	refusing := mcpfile.Server{ID: "refusing", Transport: mcpfile.HTTP, URL: "http://" + testkit.RefusingAddress + "/?key=" + canary}
	lookup := func(name string) (string, bool) { return canary, name == "CANARY" }
	g := startGateway(t, gateway.Config{Lookup: lookup, MinBackoff: time.Hour}, crash, remote, rest, refusing)
	shown, err := json.Marshal(g.Servers())
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(shown)}
	for _, action := range []string{"crash.x", "remote.x", "rest.x", "refusing.x"} {
		_, err := g.Invoke(t.Context(), contract.Action{Action: action})
		texts = append(texts, fmt.Sprint(err))
	}
	for _, text := range texts {
		if strings.Contains(text, canary) {
			t.Errorf("got a secret in: %s", text)
		}
	}
}

// Hostile definitions are reported and cannot be called. The other tools can be called, and the
// process continues.
func TestGateway_ReportsHostileDefinitions(t *testing.T) {
	const object = `{"type":"object"}`
	tools := map[string]string{
		"good":     object,
		"deep":     strings.Repeat(`{"not":`, 300) + "{}" + strings.Repeat("}", 300),
		"wide":     `{"anyOf":[` + strings.Repeat("{},", 30_000) + `{}]}`,
		"endless":  `{"$ref":"#/properties/a"}`,
		"long":     `{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}`,
		"external": `{"$ref":"http://` + testkit.RefusingAddress + `/"}`,
	}
	var list []string
	for name, schema := range tools {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":{"a":%s}}}`, name, schema))
	}
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&request) != nil || request.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `"error":{"code":-32601,"message":"not found"}`
		switch request.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"hostile","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[` + strings.Join(list, ",") + `]}`
		case "tools/call":
			answer = `"result":{"content":[]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, request.ID, answer)
	}))
	g := startGateway(t, gateway.Config{MinBackoff: time.Hour}, mcpfile.Server{ID: "h", Transport: mcpfile.HTTP, URL: server.URL})
	for name := range tools {
		_, err := g.Invoke(t.Context(), contract.Action{Action: "h." + name, Input: json.RawMessage(`{"a":{}}`)})
		want := "SERVER_UNAVAILABLE"
		if name == "good" {
			want = ""
		}
		if got := codeOf(err); got != want && (name != "endless" || got != "INVALID_INPUT") {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
