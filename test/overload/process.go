package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// mainPackage is what is built and measured.
const mainPackage = "github.com/caprouter/caprouter/cmd/caprouter"

// How long a process may take to start, and to end when it is asked to.
const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// build compiles the router and returns the path of the binary.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "caprouter")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, mainPackage) //nolint:gosec // a directory of our own
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", mainPackage, err, out)
	}
	return binary, nil
}

// process is a server in a process of its own.
type process struct {
	name   string
	cmd    *exec.Cmd
	addr   string               // host:port it listens on
	ask    func(*process) error // asks it to end
	exited chan struct{}        // closed when it has ended
	group  *run.Group
	log    *routerLog // of a router
	stdin  io.Closer  // of a role
}

// startRouter starts the router and returns when it listens.
func startRouter(ctx context.Context, binary, config string) (*process, error) {
	log, err := openLog(filepath.Join(filepath.Dir(config), "router.log"))
	if err != nil {
		return nil, err
	}
	p := &process{name: "router", log: log, ask: func(p *process) error { return p.cmd.Process.Signal(syscall.SIGTERM) }}
	p.cmd = exec.CommandContext(ctx, binary, "serve", "--config", config) //nolint:gosec // built above
	p.cmd.Env = environment()
	p.cmd.Stderr = log
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, log.close())
	}
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	why := "the router ended"
	select {
	case <-log.listens:
		p.addr = log.addr
		return p, nil
	case <-p.exited:
	case <-timer.C:
		why = fmt.Sprintf("the router did not listen within %s", startTimeout)
	case <-ctx.Done():
		why = ctx.Err().Error()
	}
	return nil, errors.Join(fmt.Errorf("start: %s; its log ends with:\n%s", why, log.tail()), p.stop())
}

// startRole starts this program again in a role and waits for its address.
func startRole(ctx context.Context, self, role string, opts options) (*process, error) {
	p := &process{name: role, ask: func(p *process) error { return p.stdin.Close() }}
	p.cmd = exec.CommandContext(ctx, self, //nolint:gosec // this program itself
		"-work", opts.work.String(), "-in-flight", fmt.Sprint(opts.inFlight), role)
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	p.watch(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: no address: %w", role, err), p.stop())
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

func (p *process) start(ctx context.Context) error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.watch(ctx)
	return nil
}

// watch notices the end of the process.
func (p *process) watch(ctx context.Context) {
	p.exited = make(chan struct{})
	p.group = run.New(context.WithoutCancel(ctx))
	p.group.Go("wait for "+p.name, func(context.Context) error {
		defer close(p.exited)
		_ = p.cmd.Wait() // ended says how it went
		return nil
	})
}

// ended says that the process is gone, when it should not be.
func (p *process) ended() error {
	select {
	case <-p.exited:
		return fmt.Errorf("the %s died: %s", p.name, p.cmd.ProcessState)
	default:
		return nil
	}
}

// stop asks the process to end and says when it did not do so in good order. One
// that does not end is killed.
func (p *process) stop() error {
	err := p.ended()
	if err == nil {
		err = p.end()
	}
	err = errors.Join(err, p.group.Wait())
	if p.log != nil {
		err = errors.Join(err, p.log.close())
	}
	return err
}

func (p *process) end() error {
	if err := p.ask(p); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("ask the %s to end: %w", p.name, err), p.cmd.Process.Kill())
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.exited:
		if code := p.cmd.ProcessState.ExitCode(); code > 0 {
			return fmt.Errorf("the %s ended with status %d", p.name, code)
		}
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("the %s did not stop within %s", p.name, stopTimeout), p.cmd.Process.Kill())
	}
}

// environment is this process's, without what would configure the router.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "CAPROUTER_") || strings.HasPrefix(entry, "GEMINI_API_KEY=")
	})
}
