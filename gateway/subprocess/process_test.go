//go:build unix

package subprocess_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/caprouter/caprouter/gateway/subprocess"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestProcess_ForwardsMessages(t *testing.T) {
	p, pids, out := start(t, "echo")
	for _, line := range []string{"{\"id\":1}", "a banner", "[INFO] ready", "{broken", "", " [2] "} {
		if _, err := fmt.Fprintln(p.Input, line); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`{"id":1}`, `[2]`} {
		if got := readLine(t, out); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got, want := p.DroppedLines(), 4; got != want {
		t.Errorf("got %d dropped lines, want %d", got, want)
	}
	// The server exits at the end of its input, so no signal is needed.
	if err := p.Input.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.WaitClosed(t, p.Exited())
	waitUntilEnded(t, pids)
	closeProcess(t, p)
	if err := p.ExitError(); err == nil || err.Error() != "the process exited with code 0" {
		t.Errorf("got %v, want exit code 0 at the end of the input", err)
	}
}

func TestProcess_KillsGroup(t *testing.T) {
	t.Parallel()
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		p, pids, _ := start(t, "stubborn")
		closeProcess(t, p)
		waitUntilEnded(t, pids)
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		p, pids, _ := start(t, "stubborn")
		if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		closeProcess(t, p)
		waitUntilEnded(t, pids)
	})
	t.Run("exited", func(t *testing.T) {
		t.Parallel()
		p, pids, _ := start(t, "orphan")
		testkit.WaitClosed(t, p.Exited())
		waitUntilEnded(t, pids)
		if err := p.ExitError(); err == nil || err.Error() != "the process exited with code 3" {
			t.Errorf("got %v, want exit code 3", err)
		}
		closeProcess(t, p)
	})
	for _, behavior := range []string{"stubborn", "obedient"} {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			t.Run(behavior+", parent ended by "+signal.String(), func(t *testing.T) {
				t.Parallel()
				parent := exec.CommandContext(t.Context(), os.Args[0], "parent", os.Args[0], "server", behavior)
				out, err := parent.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := parent.Start(); err != nil {
					t.Fatal(err)
				}
				pids := readPIDs(t, bufio.NewReader(out))
				if err := parent.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				_ = parent.Wait()
				waitUntilEnded(t, pids)
			})
		}
	}
}

func TestProcess_KeepsEndOfStderr(t *testing.T) {
	p, _, out := start(t, "flood")
	if got, want := readLine(t, out), `{"flooded":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	closeProcess(t, p)
	got := p.Stderr()
	if len(got) != 64<<10 || !strings.HasSuffix(got, "the end") {
		t.Errorf("got %d bytes that end with %q, want the last 64 KiB", len(got), got[max(0, len(got)-20):])
	}
}

// A server that closes its output cannot answer any more.
func TestProcess_OutputEndsWhenServerClosesIt(t *testing.T) {
	p, _, out := start(t, "mute")
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, out)
		ended <- err
	}()
	if err := testkit.Receive(t, ended); err != nil {
		t.Errorf("got %v, want the end of the output", err)
	}
	closeProcess(t, p)
}

func TestProcess_RejectsLongLine(t *testing.T) {
	p, _, out := start(t, "long line")
	_, err := io.Copy(io.Discard, out)
	if err == nil || !strings.Contains(err.Error(), "a line of more than 16777216 bytes") {
		t.Errorf("got %v, want an error about the line", err)
	}
	closeProcess(t, p)
}

func TestProcess_InheritsNoOtherVariables(t *testing.T) {
	t.Setenv("CAPROUTER_TEST_SECRET", "x")
	t.Setenv("LANG", "C")
	p, _, out := start(t, "env")
	line := readLine(t, out)
	if strings.Contains(line, "SECRET") || !strings.Contains(line, "LANG=C") || !strings.Contains(line, "DECLARED=yes") {
		t.Errorf("got %s, want LANG and DECLARED without the secret", line)
	}
	closeProcess(t, p)
}

func TestStart_UnknownProgram(t *testing.T) {
	p, err := subprocess.Start(subprocess.Config{Supervisor: supervisor(), Command: []string{"no-such-program"}})
	if err != nil {
		t.Fatal(err)
	}
	testkit.WaitClosed(t, p.Exited())
	want := `cannot start the MCP server: exec: "no-such-program": executable file not found in $PATH`
	if got := p.ExitError(); got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
	closeProcess(t, p)
	_, err = subprocess.Start(subprocess.Config{Supervisor: supervisor(), Command: []string{"x"}, Dir: "/no/such/directory"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want an error about the directory", err)
	}
}

func supervisor() []string { return []string{os.Args[0], "supervise"} }

// start starts a server of this test binary and returns its process ids.
func start(t *testing.T, behavior string) (*subprocess.Process, []int, *bufio.Reader) {
	t.Helper()
	p, err := subprocess.Start(subprocess.Config{
		Supervisor: supervisor(), Command: []string{os.Args[0], "server", behavior}, Env: map[string]string{"DECLARED": "yes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(p.Output)
	return p, readPIDs(t, out), out
}

func readPIDs(t *testing.T, out *bufio.Reader) []int {
	t.Helper()
	line := "starting …"
	for !strings.HasPrefix(line, "{") {
		line = readLine(t, out)
	}
	var first struct {
		PIDs []int `json:"pids"`
	}
	if err := strictjson.Unmarshal([]byte(line), &first); err != nil {
		t.Fatal(err)
	}
	return first.PIDs
}

func readLine(t *testing.T, out *bufio.Reader) string {
	t.Helper()
	lines := make(chan string, 1)
	go func() {
		line, err := out.ReadString('\n')
		if err != nil {
			line = err.Error()
		}
		lines <- strings.TrimSpace(line)
	}()
	return testkit.Receive(t, lines)
}

func closeProcess(t *testing.T, p *subprocess.Process) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	if err := testkit.Receive(t, closed); err != nil {
		t.Errorf("close: %v", err)
	}
}

// waitUntilEnded waits until none of the processes exists. A zombie counts as ended, because only its
// parent can remove it.
func waitUntilEnded(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		testkit.Eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool {
			if syscall.Kill(pid, 0) != nil {
				return true
			}
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err == nil && strings.Contains(string(status), ") Z ")
		})
	}
}
