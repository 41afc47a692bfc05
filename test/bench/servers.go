package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/run"
)

// serveArg as the first argument makes this program one of the servers;
// ioTimeout ends a connection that stands still.
const (
	serveArg  = "serve"
	ioTimeout = 10 * time.Second
)

// process is one server, in a process of its own so that its CPU time counts
// nothing else.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // a line asks for the CPU time; closing it ends the process
	stdout *bufio.Reader
	url    string
	start  time.Duration // until it said where it listens
}

// startProcess starts this program again in the role and waits for its address.
func startProcess(ctx context.Context, role string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, serveArg, role) //nolint:gosec // this program itself
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, stdout: bufio.NewReader(stdout)}
	addr, err := p.stdout.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: no address: %w", role, err)
	}
	p.start = time.Since(began)
	p.url = "http://" + strings.TrimSpace(addr)
	return p, nil
}

// cpuTime is the user and system time of the process so far. It is asked
// itself: what the system shows of others is counted in steps of 10 ms, a tenth
// of a short round of a fast server.
func (p *process) cpuTime() (time.Duration, error) {
	if _, err := fmt.Fprintln(p.stdin); err != nil {
		return 0, err
	}
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("ask for the CPU time: %w", err)
	}
	return time.ParseDuration(strings.TrimSpace(line))
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}

// serve runs one role until standard input closes, which it does with the
// parent, however that ends.
func serve(ctx context.Context, role string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group := run.New(ctx)
	group.Go("parent", func(context.Context) error {
		defer cancel()
		return answerParent(os.Stdin, os.Stdout)
	})
	kind, arg, _ := strings.Cut(role, "=")
	var err error
	switch kind {
	case "echo":
		err = serveHandler(ctx, http.HandlerFunc(echo))
	case "agent":
		err = serveHandler(ctx, http.HandlerFunc(agent))
	case "gateway":
		err = serveHandler(ctx, gateway(arg))
	case "router":
		err = serveRouter(ctx, arg)
	default:
		err = fmt.Errorf("no role %q", role)
	}
	cancel()
	return err
}

// answerParent answers each line with the CPU time of this process.
func answerParent(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		fmt.Fprintln(out, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()))
	}
	return lines.Err()
}

func serveHandler(ctx context.Context, h http.Handler) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	server := &http.Server{Handler: h, ReadHeaderTimeout: ioTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func serveRouter(ctx context.Context, dir string) error {
	cfg, err := app.LoadConfig(filepath.Join(dir, "caprouter.yaml"), nil)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	server, err := app.Start(ctx, cfg, app.Options{
		LogOutput: log, OwnProcess: true,
		LookupEnv: func(string) (string, bool) { return "", false }, // no model, whatever the environment has
	})
	if err != nil {
		return err
	}
	fmt.Println(server.Addr())
	return server.Wait()
}

// echo is the floor of the decision path: JSON in, JSON out.
func echo(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// agent is the smallest agent: every task succeeds at once.
func agent(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"success","data":{"answer":"done"}}`)
}

// gateway is the floor of a route: it makes one call and returns the answer.
func gateway(target string) http.Handler {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: ioTimeout}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, target, bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, resp.Body)
	})
}
