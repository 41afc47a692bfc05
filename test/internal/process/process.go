// Package process builds, starts, stops and kills servers in processes of their
// own, for the drivers below test/. A server is a router, started with a
// configuration file, or the driver itself in another role (see [StartRole]).
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// StartTimeout and StopTimeout bound how long a process may take to start and to
// shut down.
const (
	StartTimeout = time.Minute
	StopTimeout  = 30 * time.Second
)

// Process is a running server. Its fields do not change after it was started.
type Process struct {
	Name    string
	Started time.Time

	StartTime time.Duration // of a role, until it listened

	cmd    *exec.Cmd
	exited chan struct{}
	group  *run.Group
	log    *routerLog     // of a router; nil for a role
	addr   string         // of a role
	stdin  io.WriteCloser // of a role
}

// WriteConfig writes the configuration and the registry of a router into dir and
// returns the path of the configuration.
func WriteConfig(dir, config, registry string) (string, error) {
	path := filepath.Join(dir, "caprouter.yaml")
	return path, errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "capabilities.yaml"), []byte(registry), 0o600),
		os.WriteFile(path, []byte(config), 0o600))
}

// StartRouter starts a router with the configuration and waits until it listens.
func StartRouter(ctx context.Context, binary, config string) (*Process, error) {
	p, err := LaunchRouter(ctx, binary, config)
	if err != nil {
		return nil, err
	}
	if _, err := p.WaitForLog(ctx, LogListening, StartTimeout); err != nil {
		return nil, errors.Join(err, p.DumpStacks()) // in its log: what it waits for
	}
	return p, nil
}

// LaunchRouter starts a router and does not wait. Its log is appended to router.log
// beside the configuration.
func LaunchRouter(ctx context.Context, binary, config string) (*Process, error) {
	log, err := openLog(filepath.Join(filepath.Dir(config), "router.log"))
	if err != nil {
		return nil, err
	}
	p := &Process{Name: "router", log: log}
	p.cmd = exec.CommandContext(ctx, binary, "serve", "--config", config) //nolint:gosec // built by Build
	p.cmd.Env = cleanEnvironment()
	p.cmd.Stderr = log
	if err := p.startCommand(ctx); err != nil {
		return nil, errors.Join(err, log.close())
	}
	return p, nil
}

// StartRole starts this program again with the arguments and waits until it listens:
// a role calls [ServeRole].
func StartRole(ctx context.Context, name string, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name}
	p.cmd = exec.CommandContext(ctx, self, args...) //nolint:gosec // this program
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.startCommand(ctx); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the %s: read its address: %w", name, err), p.Stop(ctx))
	}
	p.addr, p.StartTime = strings.TrimSpace(line), time.Since(p.Started)
	return p, nil
}

// startCommand starts the command in a goroutine that waits for its exit. It keeps
// its thread meanwhile, because the process is killed when the thread ends that
// started it, see killWithParent.
func (p *Process) startCommand(ctx context.Context) error {
	killWithParent(p.cmd)
	p.exited = make(chan struct{})
	p.group = run.New(context.WithoutCancel(ctx))
	p.Started = time.Now()
	started := make(chan error, 1)
	p.group.Go("wait for the "+p.Name, func(context.Context) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // Stop reports the exit code
		}
		return nil
	})
	return <-started
}

// Addr returns the host and port at which the process listens.
func (p *Process) Addr() string {
	if p.log != nil {
		return p.log.listenAddr()
	}
	return p.addr
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// WaitForLog waits for a line of the log with the text, and returns how long after
// the start it was written. The text is one of the Log constants.
func (p *Process) WaitForLog(ctx context.Context, text string, limit time.Duration) (time.Duration, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	line := p.log.awaited[text]
	reason := "the router exited"
	select {
	case <-line.seen:
		return line.at.Sub(p.Started), nil
	case <-p.exited:
	case <-timer.C:
		reason = fmt.Sprintf("no such line within %s", limit)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return 0, fmt.Errorf("wait for %q in the log: %s; the log ends with:\n%s", text, reason, p.log.tail())
}

// CheckRunning returns an error if the process has exited.
func (p *Process) CheckRunning() error {
	select {
	case <-p.exited:
		return fmt.Errorf("the %s died: %s", p.Name, p.cmd.ProcessState)
	default:
		return nil
	}
}

// Kill ends the process with SIGKILL and waits until it has exited.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return errors.Join(err, p.release())
}

// DumpStacks has the process write the stacks of its goroutines to its standard error
// and exit. It kills the process if it does not exit.
func (p *Process) DumpStacks() error {
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, p.Kill())
	}
	timer := time.NewTimer(IOTimeout)
	defer timer.Stop()
	select {
	case <-p.exited:
		return p.release()
	case <-timer.C:
		return p.Kill()
	}
}

// Pause suspends the process with SIGSTOP, until Continue.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue resumes a suspended process.
func (p *Process) Continue() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Stop requests a graceful shutdown and waits for it: a router receives SIGTERM, the
// standard input of a role is closed. It returns an error if the process was dead
// before, exits with another code than 0, or must be killed after [StopTimeout].
func (p *Process) Stop(ctx context.Context) error {
	err := p.CheckRunning()
	if err == nil {
		err = p.shutdown(ctx)
	}
	return errors.Join(err, p.release())
}

func (p *Process) shutdown(ctx context.Context) error {
	request := func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	if p.stdin != nil {
		request = p.stdin.Close
	}
	if err := request(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("stop the %s: %w", p.Name, err), p.cmd.Process.Kill())
	}
	timer := time.NewTimer(StopTimeout)
	defer timer.Stop()
	select {
	case <-p.exited:
		if code := p.cmd.ProcessState.ExitCode(); code > 0 {
			return fmt.Errorf("the %s exited with code %d%s", p.Name, code, p.logTail())
		}
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return errors.Join(fmt.Errorf("the %s did not stop within %s", p.Name, StopTimeout), p.cmd.Process.Kill())
}

func (p *Process) logTail() string {
	if p.log == nil {
		return ""
	}
	return "; its log ends with:\n" + p.log.tail()
}

func (p *Process) release() error {
	err := p.group.Wait()
	if p.log != nil {
		err = errors.Join(err, p.log.close())
	}
	return err
}

// RSSMiB returns the resident memory of the process, 0 if the system does not
// report it.
func (p *Process) RSSMiB() float64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	fields := strings.Fields(string(statm))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// RunCommand runs a command of the router and returns its output.
func RunCommand(ctx context.Context, binary string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // built by Build
	cmd.Env = cleanEnvironment()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// cleanEnvironment returns the environment without variables that configure a router.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "CAPROUTER_") || strings.HasPrefix(entry, "GEMINI_API_KEY=")
	})
}
