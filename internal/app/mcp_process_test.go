package app

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// processOf returns the process of a sample server of this test process.
func processOf(t *testing.T, name string) int {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc on this system")
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, _ := os.ReadFile(file) // the process may have ended
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		if string(line) == strings.Join([]string{os.Args[0], "sample", name, ""}, "\x00") && isAlive(pid) {
			return pid
		}
	}
	t.Fatalf("got no process of %s", name)
	return 0
}

// isAlive reports whether the process is running. A zombie is not.
func isAlive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(state, "Z")
}

// No call of the API starts a process, and validate connects to no server.
func TestMCP_CallsStartNoProcess(t *testing.T) {
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer trap.Close()
	marker := filepath.Join(t.TempDir(), "started")
	issuer := newTokenIssuer()
	s := startGuarded(t, issuer, "clients: {}\n")
	command := fmt.Sprintf(`"command":"touch","args":[%q]`, marker)
	url := "http://" + trap.Addr().String()
	token := issuer.token("root", "admin mcp:read mcp:invoke:weather.query", nil)
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/validate", `{"servers":[{"id":"a",` + command + `},{"id":"b","transport":"sse","url":"` + url + `"}]}`, 200},
		{"/validate", `{"mcpServers":{"a":{` + command + `,"env":{"A":"${HOME}"}}}}`, 200},
		{"/servers", `{"name":"a",` + command + `}`, 422},
		{"/servers", `{"name":"a","type":"stdio","url":"` + url + `"}`, 422},
		{"/servers", `{"name":"a","type":"local","url":"https://mcp.invalid/"}`, 422},
		{"/servers", `{"name":"a","url":"file:///bin/sh"}`, 422},
		{"/servers", `{"name":"a","url":"http://169.254.169.254/"}`, 422},
		{"/servers", `{"name":"a","url":"http://mcp.invalid/","headers":{"Authorization":"Bearer x"}}`, 422},
		{"/servers", `{"name":"a","url":"https://mcp.invalid/","headers":{"A B":"x"}}`, 422},
		{"/servers", `{"name":"a","url":"https://mcp.invalid/","headers":{"A":"x\ny"}}`, 422},
		{"/servers", `{"name":"../a","url":"https://mcp.invalid/"}`, 422},
		{"/test", `{"server":"a",` + command + `}`, 422},
		{"/test", `{"server":"touch"}`, 404},
		{"/invoke", `{"action":"touch.started"}`, 403},
	} {
		got := s.do(call{method: "POST", path: "/api/v1/mcp" + c.path, token: token, body: c.body})
		if got.status != c.status {
			t.Errorf("%s %s: got %d %s, want %d", c.path, c.body, got.status, got.body, c.status)
		}
	}
	// The guard blocks the loopback address at connect time.
	got := s.do(call{method: "POST", path: "/api/v1/mcp/servers", token: token, body: `{"name":"loop","url":"` + url + `"}`})
	if got.status == 201 {
		testkit.Eventually(t, "the registered server is blocked", func() bool {
			got := s.do(call{method: "GET", path: "/api/v1/mcp/servers/loop", token: token})
			return strings.Contains(string(got.body), `"status":"error"`)
		})
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("got a command executed, want none")
	}
	accepted := make(chan string, 1)
	go func() {
		if c, err := trap.Accept(); err == nil {
			accepted <- c.RemoteAddr().String()
			_ = c.Close()
		}
		close(accepted)
	}()
	last, err := net.Dial("tcp", trap.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if first := testkit.Receive(t, accepted); first != last.LocalAddr().String() {
		t.Error("got a connection to the address, want none")
	}
}

// A graceful stop ends all processes.
func TestMCP_EndsProcessesAtShutdown(t *testing.T) {
	var pid int
	t.Run("serve", func(t *testing.T) {
		_, change := useMCP(t, samples("system"))
		s := startServer(t, "clients: {}\n", change)
		waitForServers(s, "system")
		pid = processOf(t, "system")
	})
	if pid != 0 && isAlive(pid) {
		t.Errorf("got process %d alive after the shutdown", pid)
	}
}
