package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// mainPackage is what is built and killed.
const mainPackage = "github.com/caprouter/caprouter/cmd/caprouter"

// How long a router may take to start, and to end after SIGTERM.
const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// place is where a part of the run works, and with which binary.
type place struct{ dir, binary string }

// below returns a place of its own.
func (p place) below(name string) (place, error) {
	dir := filepath.Join(p.dir, name)
	return place{dir: dir, binary: p.binary}, os.MkdirAll(dir, 0o700)
}

// build compiles the router and returns the path of the binary.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "caprouter")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, mainPackage) //nolint:gosec // a directory of our own
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", mainPackage, err, out)
	}
	return binary, nil
}

// process is one life of a router.
type process struct {
	cmd    *exec.Cmd
	log    *routerLog
	began  time.Time
	exited chan struct{} // closed when it has ended
	group  *run.Group
}

// start starts a router with the configuration and returns when it listens.
func start(ctx context.Context, binary, config string) (*process, error) {
	p, err := launch(ctx, binary, config)
	if err != nil {
		return nil, err
	}
	if _, err := p.until(ctx, markListening, startTimeout); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// launch starts a router and does not wait. Its log is appended to the file beside
// the configuration.
func launch(ctx context.Context, binary, config string) (*process, error) {
	log, err := openLog(filepath.Join(filepath.Dir(config), "router.log"))
	if err != nil {
		return nil, err
	}
	p := &process{log: log, exited: make(chan struct{}), group: run.New(context.WithoutCancel(ctx))}
	p.cmd = exec.CommandContext(ctx, binary, "serve", "--config", config) //nolint:gosec // built above
	p.cmd.Env = environment()
	p.cmd.Stderr = log
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.close())
	}
	p.group.Go("wait for the router", func(context.Context) error {
		defer close(p.exited)
		_ = p.cmd.Wait() // it is killed: that is no news
		return nil
	})
	return p, nil
}

// until waits for a line of the log and returns how long after the start it came.
func (p *process) until(ctx context.Context, mark string, limit time.Duration) (time.Duration, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	why := "the router ended"
	select {
	case <-p.log.marks[mark].seen:
		return p.log.marks[mark].at.Sub(p.began), nil
	case <-p.exited:
	case <-timer.C:
		why = fmt.Sprintf("the router did not say it within %s", limit)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return 0, fmt.Errorf("waiting for %q: %s; its log is at an end with:\n%s", mark, why, p.log.tail())
}

// addr is where it listens.
func (p *process) addr() string { return p.log.addr() }

// kill ends the process as a power cut would, and returns when it is gone.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return errors.Join(err, p.group.Wait(), p.log.close())
}

// stop asks the process to end and says when it did not do so in good order. One
// that does not end is killed.
func (p *process) stop(ctx context.Context) error {
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, p.kill())
	}
	select {
	case <-p.exited:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			return errors.Join(fmt.Errorf("the router ended with status %d after SIGTERM; its log ends with:\n%s", code, p.log.tail()), p.kill())
		}
		return p.kill()
	case <-timer.C:
	case <-ctx.Done():
	}
	return errors.Join(fmt.Errorf("the router did not stop within %s of SIGTERM", stopTimeout), p.kill())
}

// rss is the memory the process holds, in MiB; 0 where the system does not tell.
func (p *process) rss() float64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// environment is this process's, without what would configure the router.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "CAPROUTER_") || strings.HasPrefix(entry, "GEMINI_API_KEY=")
	})
}

// verifyAudit has the router's own command verify the audit log, and returns what
// it says. An error says that the log is not as it was written.
func verifyAudit(ctx context.Context, binary, dataDir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "audit", "verify", "--data-dir", dataDir) //nolint:gosec // built above
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
