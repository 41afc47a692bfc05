//go:build unix

package subprocess

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

func checkSystem() error { return nil }

// newGroup makes a process the leader of a new process group.
func newGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the processes of the group with the leader. The id stays reserved
// while the group has members.
func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }

const lifelineFD = 3

// Supervise starts the command, passes standard input, output and error on to it, and
// returns its exit code. It ends the process group when the lifeline closes. It is the
// whole work of a supervisor process.
func Supervise(ctx context.Context, command []string) int {
	if len(command) == 0 {
		return exitUsage
	}
	syscall.CloseOnExec(lifelineFD)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...) //nolint:gosec // the operator's command
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot start the MCP server: %v\n", err)
		return exitNotFound
	}
	// Only the server holds them, so that its parent notices when it closes one.
	_ = os.Stdin.Close()
	_ = os.Stdout.Close()
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // of the group
	exited := make(chan struct{})
	group := run.New(ctx)
	group.Go("wait for MCP server", func(context.Context) error {
		defer close(exited)
		_ = cmd.Wait() // the state has it
		return nil
	})
	group.Go("wait for parent", func(context.Context) error {
		_, _ = io.Copy(io.Discard, os.NewFile(lifelineFD, "lifeline"))
		signalGroup(syscall.SIGTERM)
		timer := time.NewTimer(TermGrace)
		defer timer.Stop()
		select {
		case <-exited:
		case <-timer.C:
		}
		signalGroup(syscall.SIGKILL) // ends this process as well
		return nil
	})
	<-exited
	// Kill the rest of the group here, because the parent may be dead. Join the parent's
	// group first, so that this process survives the signal and the parent gets the exit
	// code. If the parent is dead, that may fail, and no process needs the code.
	if parents, err := syscall.Getpgid(syscall.Getppid()); err == nil {
		_ = syscall.Setpgid(0, parents)
	}
	signalGroup(syscall.SIGKILL)
	return exitCode(cmd.ProcessState)
}

// signalGroup signals the processes of the group whose leader this process was at its start.
// Process id 0 would be the parent's group after Supervise has joined that.
func signalGroup(s syscall.Signal) { _ = syscall.Kill(-os.Getpid(), s) }

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return state.ExitCode()
}
