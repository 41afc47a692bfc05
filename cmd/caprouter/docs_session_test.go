//go:build unix

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
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// docSession executes the commands of one document in its own directory, with one environment and
// one working directory, like a reader who enters them. Servers run in the background until the
// document starts the same server again, or ends.
type docSession struct {
	t       *testing.T
	dir     string
	env     []string
	ports   map[string]string // of the document, by the ports that replace them
	ids     map[string]string // of the output, by those of the document
	servers map[string]*docServer
	reply   string // of the fake model that is configured for every command
	key     string // of the model
}

// docTimeout limits one command, and the start of one server.
const docTimeout = 30 * time.Second

func newDocSession(t *testing.T) *docSession {
	t.Helper()
	s := &docSession{t: t, dir: t.TempDir(), ports: map[string]string{}, ids: map[string]string{}, servers: map[string]*docServer{}}
	binary, err := exec.LookPath("caprouter") // this test binary, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	model := fakellm.Start(t, fakellm.Config{Script: func(*fakellm.Request) fakellm.Behaviour { return fakellm.Text(s.reply) }})
	s.reply, s.key = fakellm.ValidReply(), model.Key
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + t.TempDir(), "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"), "GORACE=atexit_sleep_ms=0",
		"CAPROUTER_LISTEN=" + s.replacePorts("127.0.0.1:8080"), "CAPROUTER_LLM_BASE_URL=" + model.URL,
		"DOC_STATE=" + filepath.Join(t.TempDir(), "state"),
	}
	s.must(os.Symlink(binary, filepath.Join(s.dir, "caprouter")))
	s.must(os.CopyFS(filepath.Join(s.dir, "examples"), os.DirFS("../../examples")))
	s.replaceInFiles()
	t.Cleanup(s.stopServers)
	return s
}

func (s *docSession) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

var docPort = regexp.MustCompile(`\b(127\.0\.0\.1|localhost):([1-9]\d{3,4})\b`)

// replacePorts replaces each port of a document by a free one.
func (s *docSession) replacePorts(text string) string {
	return docPort.ReplaceAllStringFunc(text, func(address string) string {
		host, port, _ := strings.Cut(address, ":")
		if s.ports[port] == "" {
			free := strconv.Itoa(testkit.FreePort(s.t))
			s.ports[port] = free
		}
		return host + ":" + s.ports[port]
	})
}

// restorePorts reverses replacePorts in an output.
func (s *docSession) restorePorts(text string) string {
	for port, free := range s.ports {
		text = strings.ReplaceAll(text, ":"+free, ":"+port)
	}
	return text
}

// replaceInFiles replaces the ports in the files of the directory, for example those written by
// caprouter init.
func (s *docSession) replaceInFiles() {
	files, err := filepath.Glob(filepath.Join(s.dir, "*.yaml"))
	s.must(err)
	examples, err := filepath.Glob(filepath.Join(s.dir, "examples", "*.yaml"))
	s.must(err)
	for _, path := range append(files, examples...) {
		data, err := os.ReadFile(path)
		s.must(err)
		if text := s.restorePorts(string(data)); text == string(data) { // otherwise it was replaced before
			s.must(os.WriteFile(path, []byte(s.replacePorts(text)), 0o600))
		}
	}
}

// run executes one step and returns the difference or error.
func (s *docSession) run(step *docStep) error {
	if step.reply != "" {
		s.reply = step.reply
		return nil
	}
	if step.file != "" {
		return os.WriteFile(filepath.Join(s.dir, step.file), []byte(s.replacePorts(step.content)), 0o600)
	}
	command, server := s.prepare(step.command)
	var output string
	var err error
	if server != "" {
		output, err = s.startServer(server, command)
	} else {
		output, err = s.execute(command, exitCodeOf(step.command))
	}
	s.replaceInFiles()
	output = s.restorePorts(output)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	if !step.compared {
		return nil
	}
	return matchOutput(step.expected, output, s.ids)
}

var (
	docServerCommand = regexp.MustCompile(`^(?:\./)?(?:caprouter (serve|demo|agent-sample)|example-(agent))\b`)
	docExitCode      = regexp.MustCompile(`# .*\bexit code (\d+)`)
	docListCommand   = regexp.MustCompile(`^(?:\./)?caprouter (?:agents list|tickets|decisions|teach)\b`)
)

// exitCodeOf returns the exit code in the comment of a command, for example "caprouter lint # exit
// code 1".
func exitCodeOf(command string) int {
	if m := docExitCode.FindStringSubmatch(command); m != nil {
		code, _ := strconv.Atoi(m[1])
		return code
	}
	return 0
}

// prepare returns the command as the session executes it, and the server that it starts in the
// background, if any.
func (s *docSession) prepare(command string) (prepared, server string) {
	for id, actual := range s.ids {
		command = strings.ReplaceAll(command, id, actual)
	}
	command = s.replacePorts(command)
	command = strings.ReplaceAll(command, "=…", "="+s.key) // export GEMINI_API_KEY=…
	command = strings.ReplaceAll(command, "go run ./cmd/caprouter", "caprouter")
	if docListCommand.MatchString(command) { // these call the default address
		command = "CAPROUTER_URL=http://" + s.replacePorts("127.0.0.1:8080") + " " + command
	}
	if strings.HasPrefix(command, "go run ./examples/agent") {
		s.goBuild("example-agent", "./examples/agent")
		command = strings.Replace(command, "go run ./examples/agent", "./example-agent", 1)
	}
	if rest, ok := strings.CutPrefix(command, "go build -o caprouter "); ok {
		s.must(os.Remove(filepath.Join(s.dir, "caprouter")))
		s.goBuild("caprouter", strings.Fields(rest)[0])
		return "true", ""
	}
	m := docServerCommand.FindStringSubmatch(strings.TrimPrefix(command, "./"))
	if m == nil || strings.Contains(command, "--once") {
		return command, ""
	}
	server = m[1] + m[2]
	if strings.HasPrefix(server, "agent") {
		command = fmt.Sprintf("%s --listen %s --router http://%s", strings.Split(command, "#")[0],
			s.replacePorts("127.0.0.1:9101"), s.replacePorts("127.0.0.1:8080"))
	}
	return command, server
}

// goBuild builds a command of the repository into the directory.
func (s *docSession) goBuild(name, pkg string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "go", "build", "-o", filepath.Join(s.dir, name), pkg)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
}

// shellCommand returns a shell that continues with the environment and the working directory of the
// previous command.
func (s *docSession) shellCommand(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", `[ ! -f "$DOC_STATE" ] || . "$DOC_STATE"`+"\n"+script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, s.env, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// execute returns the output of a command that must end with the exit code.
func (s *docSession) execute(command string, exitCode int) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), docTimeout)
	defer cancel()
	out, err := s.shellCommand(ctx, command+"\ncode=$?\n"+`{ export -p; echo "cd '$PWD'"; } >"$DOC_STATE"; exit $code`).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitCode {
		err = nil
	} else if err == nil && exitCode != 0 {
		err = fmt.Errorf("exit code 0, want %d", exitCode)
	}
	return string(out), err
}

// docServer is a process in the background.
type docServer struct {
	cmd  *exec.Cmd
	read sync.WaitGroup
}

// startServer starts a process, which replaces the one with the same name, and returns its output
// up to the line with the address.
func (s *docSession) startServer(name, command string) (string, error) {
	s.stopServer(name)
	cmd := s.shellCommand(context.WithoutCancel(s.t.Context()), "exec 2>&1\nexec "+command)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	server := &docServer{cmd: cmd}
	s.servers[name] = server
	started := make(chan string, 1)
	server.read.Go(func() {
		var output strings.Builder
		lines, listens := bufio.NewScanner(stdout), false
		for lines.Scan() {
			output.WriteString(lines.Text() + "\n")
			if !listens && docListens.MatchString(lines.Text()) {
				listens = true
				started <- output.String()
			}
		}
		if !listens {
			started <- output.String() + "the process ended\n"
		}
		_, _ = io.Copy(io.Discard, stdout) // a line that is too long for the scanner
	})
	select {
	case output := <-started:
		if strings.HasSuffix(output, "the process ended\n") {
			return output, fmt.Errorf("%s does not serve", name)
		}
		return output, nil
	case <-time.After(docTimeout):
		return "", fmt.Errorf("%s does not serve within %s", name, docTimeout)
	}
}

// docListens matches the line after which a server accepts requests.
var docListens = regexp.MustCompile(`listening on |Serving on |serves tasks of `)

func (s *docSession) stopServer(name string) {
	server := s.servers[name]
	if server == nil {
		return
	}
	delete(s.servers, name)
	_ = syscall.Kill(-server.cmd.Process.Pid, syscall.SIGTERM)
	kill := time.AfterFunc(docTimeout, func() { _ = syscall.Kill(-server.cmd.Process.Pid, syscall.SIGKILL) })
	defer kill.Stop()
	server.read.Wait()
	_ = server.cmd.Wait()
}

func (s *docSession) stopServers() {
	for _, name := range []string{"demo", "serve", "agent-sample", "agent"} {
		s.stopServer(name)
	}
}
