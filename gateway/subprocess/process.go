package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// Exit codes of a supervisor besides that of the server, as in shells.
const (
	exitUsage    = 2
	exitNotFound = 127
	exitSignal   = 128 // plus the number of the signal
)

// Time limits of the end of a server.
const (
	StdinGrace = time.Second     // after its input is closed
	TermGrace  = 2 * time.Second // after SIGTERM
	killGrace  = 2 * time.Second // after SIGKILL
)

// Config specifies a server.
type Config struct {
	Supervisor []string // command line that calls [Supervise] with the arguments that follow
	Command    []string
	Env        map[string]string // in addition to the allowlist
	Dir        string
	// Rewrite returns the message that a line of the output is or stands for, nil if there is
	// none. It is not called for a line in which the output ends. Nil = lines are messages if
	// they are JSON objects or arrays.
	Rewrite func(line []byte) []byte
}

// inherited are the variables that a server inherits. The environment of the router
// contains credentials of others.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR", "USER"}

// Process is a running server. Its methods may be called from any goroutine; Input and
// Output by one each.
type Process struct {
	Input  io.WriteCloser
	Output io.ReadCloser // JSON messages, one a line

	output   *messageReader
	stderr   *tail
	cmd      *exec.Cmd
	lifeline *os.File
	exited   chan struct{}
	group    *run.Group
}

// Start starts a server.
func Start(cfg Config) (*Process, error) {
	if err := checkSystem(); err != nil {
		return nil, err
	}
	p := &Process{stderr: &tail{}, exited: make(chan struct{})}
	var files fileList
	defer files.closeAll()
	stdin, input := files.pipe()
	output, stdout := files.pipe()
	lifeline, holder := files.pipe()
	if files.err != nil {
		return nil, files.err
	}
	// The context only selects the constructor: the end of the process is Close.
	p.cmd = exec.CommandContext(context.Background(), cfg.Supervisor[0], slices.Concat(cfg.Supervisor[1:], cfg.Command)...) //nolint:gosec // the operator's command
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, p.stderr
	p.cmd.ExtraFiles = []*os.File{lifeline}
	p.cmd.Dir = cfg.Dir
	p.cmd.Env = environment(cfg.Env)
	p.cmd.SysProcAttr = newGroup()
	p.cmd.WaitDelay = killGrace // a process outside the group may hold stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	files.keep(input, output, holder)
	p.Input, p.lifeline = &inputWriter{input}, holder
	p.output = newMessageReader(output, cfg.Rewrite)
	p.Output = p.output
	p.group = run.New(context.Background())
	p.group.Go("wait for MCP server", func(context.Context) error {
		defer close(p.exited)
		_ = p.cmd.Wait() // ExitError describes the state
		killGroup(p.cmd.Process.Pid)
		return nil
	})
	return p, nil
}

// environment returns the environment of a server.
func environment(declared map[string]string) []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range declared {
		env = append(env, name+"="+value)
	}
	return env
}

// Exited is closed when the server and its supervisor have ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stderr returns the end of the error output.
func (p *Process) Stderr() string { return p.stderr.String() }

// DroppedLines returns how many lines of the output were no messages.
func (p *Process) DroppedLines() int { return int(p.output.dropped.Load()) }

// Close ends the server and all processes of its group: it closes its input, then
// sends SIGTERM, then SIGKILL. It returns when they have ended.
func (p *Process) Close() error {
	_ = p.Input.Close()
	p.waitFor(StdinGrace)
	_ = p.lifeline.Close() // the supervisor ends the group
	if !p.waitFor(TermGrace + killGrace) {
		killGroup(p.cmd.Process.Pid)
	}
	<-p.exited // bounded by WaitDelay
	_ = p.Output.Close()
	return p.group.Wait()
}

func (p *Process) waitFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// writeTimeout bounds one write to a server that does not read.
const writeTimeout = 5 * time.Second

// inputWriter returns an error if the server does not read.
type inputWriter struct{ *os.File }

// Write implements io.Writer.
func (w *inputWriter) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return w.File.Write(p)
}

// fileList closes files that are not kept.
type fileList struct {
	files []*os.File
	err   error
}

func (l *fileList) pipe() (r, w *os.File) {
	if l.err == nil {
		r, w, l.err = os.Pipe()
		l.files = append(l.files, r, w)
	}
	return r, w
}

func (l *fileList) keep(files ...*os.File) {
	l.files = slices.DeleteFunc(l.files, func(f *os.File) bool { return slices.Contains(files, f) })
}

func (l *fileList) closeAll() {
	for _, f := range l.files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// ExitError describes how a server ended, or returns nil while it runs.
func (p *Process) ExitError() error {
	select {
	case <-p.exited:
	default:
		return nil
	}
	code := p.cmd.ProcessState.ExitCode()
	if code == exitNotFound {
		return errors.New(strings.TrimSpace(p.Stderr()))
	}
	if code < 0 || code > exitSignal {
		return errors.New("the process was ended by a signal")
	}
	return fmt.Errorf("the process exited with code %d", code)
}
