package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// launchIn makes the test binary launch a process in this directory, print its id, and
// wait to be killed.
const launchIn = "PROCESS_TEST_LAUNCH_IN"

func launchForEver(dir string) {
	p, err := LaunchRouter(context.Background(), filepath.Join(dir, "router"), filepath.Join(dir, "caprouter.yaml"))
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PID())
	select {}
}

func TestLaunchRouter_EndsWithKilledDriver(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a signal for the death of the parent")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "router"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	driver := exec.CommandContext(t.Context(), os.Args[0])
	driver.Env = append(os.Environ(), launchIn+"="+dir)
	out, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanln(out, &pid); err != nil {
		t.Fatal(err)
	}
	if !isRunning(pid) {
		t.Fatalf("process %d does not run", pid)
	}
	if err := driver.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := driver.Wait(); err == nil {
		t.Fatal("the driver ended without the kill")
	}
	testkit.Eventually(t, "the router has ended", func() bool { return !isRunning(pid) })
}

// isRunning reports whether the process exists and is no zombie.
func isRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
