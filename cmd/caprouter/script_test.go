package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain runs main if the test binary is called caprouter, so that scripts run the command in
// separate processes.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"caprouter": main})
}

// TestScripts runs testdata/script/*.txtar. In addition to the commands of testscript,
// they may use:
//
//	usage ARGS…         caprouter ARGS ends with exit code 2 and one line on stderr
//	mistake FILE:L:C    caprouter validate ends with 1 and one line, for this position
//	start NAME ARGS…    run caprouter in the background until it listens; ADDR
//	                    becomes its address, NAME.log its log
//	signal NAME SIGNAL  send it TERM, INT or HUP
//	ended NAME          wait for its end, with exit code 0
//	killed NAME         kill it and wait for its end
//	eventually ARGS…    run caprouter ARGS until it ends with exit code 0
//	agent               an agent is at $AGENT/PATH; see fakeAgent
//	model FILE…         a Gemini is at $MODEL, with the key $MODEL_KEY, that replies
//	                    with the files in turn; the last one is repeated
//	localmodel          a server with the API of OpenAI, without a key, is at $LOCAL_MODEL
//	held, release       wait for a task at $AGENT/held, answer it
//	expand FILE…        replace $NAME in the files
//	json FILE PATH WANT the JSON value at a.0.b of the file, stdout or stderr
//	field NAME FILE PATH  $NAME becomes that value
//	await REGEXP ARGS…  until caprouter ARGS prints a match
//	freeport NAME       $NAME becomes a free address of 127.0.0.1
//	move FILE OLD NEW   replace the text OLD in the file by NEW
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every process takes a second to end under -race
			env.Values["agent"] = &fakeAgent{arrived: make(chan struct{}, 1), release: make(chan struct{})}
			env.Values["servers"] = map[string]*background{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"usage":   cmdUsage,
			"mistake": cmdMistake,
			"start":   cmdStart,
			"signal":  cmdSignal,
			"ended":   cmdEnded,
			"killed":  cmdKilled,
			"eventually": func(ts *testscript.TestScript, _ bool, args []string) {
				testkit.Eventually(t, "caprouter "+strings.Join(args, " ")+" succeeds", func() bool { return ts.Exec("caprouter", args...) == nil })
			},
			"await": func(ts *testscript.TestScript, _ bool, args []string) {
				pattern := regexp.MustCompile("(?m)" + args[0])
				testkit.Eventually(t, "caprouter "+strings.Join(args[1:], " ")+" prints "+args[0], func() bool {
					return ts.Exec("caprouter", args[1:]...) == nil && pattern.MatchString(ts.ReadFile("stdout"))
				})
			},
			"agent": cmdAgent,
			"model": func(ts *testscript.TestScript, _ bool, args []string) { startModel(t, ts, args) },
			"localmodel": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("LOCAL_MODEL", fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, NoKey: true}).URL)
			},
			"held":     func(ts *testscript.TestScript, _ bool, _ []string) { testkit.Receive(t, agentOf(ts).arrived) },
			"release":  func(ts *testscript.TestScript, _ bool, _ []string) { close(agentOf(ts).release) },
			"expand":   cmdExpand,
			"json":     cmdJSON,
			"field":    cmdField,
			"freeport": cmdFreePort,
			"move":     cmdMove,
		},
	})
}

func cmdUsage(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: usage ARGS…")
	}
	oneLineError(ts, cmdline.ExitUsage, "caprouter: ", args)
}

func cmdMistake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mistake FILE:LINE:COLUMN")
	}
	file, _, _ := strings.Cut(args[0], ":")
	oneLineError(ts, cmdline.ExitError, "caprouter: "+args[0]+": ", []string{"validate", file})
}

// oneLineError runs a command that must fail with the exit code, print nothing to stdout, and print
// one line to stderr that starts with the prefix.
func oneLineError(ts *testscript.TestScript, code int, prefix string, args []string) {
	err := ts.Exec("caprouter", args...)
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != code {
		ts.Fatalf("got %v, want exit code %d", err, code)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("got stdout %q, want none", out)
	}
	if line := ts.ReadFile("stderr"); !strings.HasPrefix(line, prefix) || strings.Count(line, "\n") != 1 {
		ts.Fatalf("got stderr %q, want one line that starts with %q", line, prefix)
	}
}

// background is a running caprouter server.
type background struct {
	cmd    *exec.Cmd
	logged sync.WaitGroup // the log has been read to its end
	log    *os.File
}

// cmdStart returns when the log contains the address of the process. The log is read while the
// process runs, so polling is not necessary.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME ARGS…")
	}
	name := args[0]
	b := &background{cmd: exec.Command("caprouter", args[1:]...)}
	b.cmd.Dir = ts.MkAbs(".")
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "GOCOVERDIR", "GORACE", "GEMINI_API_KEY", "CAPROUTER_LLM_BASE_URL", "CAPROUTER_SAMPLE_AGENT"} {
		if v := ts.Getenv(key); v != "" {
			b.cmd.Env = append(b.cmd.Env, key+"="+v)
		}
	}
	var err error
	b.log, err = os.Create(ts.MkAbs(name + ".log"))
	ts.Check(err)
	stderr, err := b.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(b.cmd.Start())
	ts.Value("servers").(map[string]*background)[name] = b
	ts.Defer(func() {
		_ = b.cmd.Process.Kill() // if a failing script has not stopped it
		b.logged.Wait()
		_ = b.cmd.Wait()
	})
	addr := make(chan string)
	b.logged.Go(func() { b.follow(stderr, addr) })
	var at string
	select {
	case at = <-addr: // "" if the command ended
	case <-time.After(testkit.Patience):
	}
	if at == "" {
		ts.Fatalf("caprouter %s ended: see %s.log:\n%s", strings.Join(args[1:], " "), name, ts.ReadFile(name+".log"))
	}
	ts.Setenv("ADDR", at)
}

// follow copies the log into its file and sends the address in it.
func (b *background) follow(stderr io.Reader, addr chan<- string) {
	defer close(addr)
	told := false
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(b.log, lines.Text())
		_, after, ok := strings.Cut(lines.Text(), "listening on ")
		if ok && !told {
			addr <- after[:strings.IndexAny(after+" ", "\" ")]
			told = true
		}
	}
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME TERM|INT|HUP")
	}
	ts.Check(serverOf(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

func cmdKilled(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: killed NAME")
	}
	b := serverOf(ts, args[0])
	ts.Check(b.cmd.Process.Kill())
	b.logged.Wait()
	ts.Check(b.log.Close())
	_ = b.cmd.Wait() // it is ended by the signal
	delete(ts.Value("servers").(map[string]*background), args[0])
}

func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ended NAME")
	}
	b := serverOf(ts, args[0])
	b.logged.Wait()
	ts.Check(b.log.Close())
	if err := b.cmd.Wait(); err != nil {
		ts.Fatalf("%s: %v\n%s", args[0], err, ts.ReadFile(args[0]+".log"))
	}
}

func serverOf(ts *testscript.TestScript, name string) *background {
	b := ts.Value("servers").(map[string]*background)[name]
	if b == nil {
		ts.Fatalf("%s was not started", name)
	}
	return b
}

// fakeAgent answers tasks depending on the path:
//
//	/ok      "done: " and the subtask's title
//	/data    no text, only data
//	/escape  text with a terminal's escape sequence in it
//	/fail    a failure of the agent
//	/broken  500
//	/held    like /ok, after the script has released it
type fakeAgent struct {
	arrived, release chan struct{}
}

func agentOf(ts *testscript.TestScript) *fakeAgent { return ts.Value("agent").(*fakeAgent) }

func cmdAgent(ts *testscript.TestScript, _ bool, _ []string) {
	server := httptest.NewServer(agentOf(ts))
	ts.Defer(server.Close)
	ts.Setenv("AGENT", server.URL)
}

func (a *fakeAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var task struct {
		Title string `json:"subtask_title"`
	}
	if err := json.NewDecoder(r.Body).Decode(&task); err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		http.Error(w, "not a task", http.StatusBadRequest)
		return
	}
	status, data := "success", map[string]any{"answer": "done: " + task.Title}
	switch r.URL.Path {
	case "/data":
		data = map[string]any{"rows": 3}
	case "/escape":
		data = map[string]any{"answer": "red \x1b[31malert"}
	case "/fail":
		status, data = "failure", map[string]any{}
	case "/broken":
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	case "/held":
		a.arrived <- struct{}{}
		select {
		case <-a.release:
		case <-r.Context().Done():
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "data": data})
}

// startModel serves until all scripts have ended.
func startModel(t *testing.T, ts *testscript.TestScript, files []string) {
	replies := make([]fakellm.Behaviour, len(files))
	for i, name := range files {
		replies[i] = fakellm.Text(strings.TrimSpace(ts.ReadFile(name)))
	}
	server := fakellm.Start(t, fakellm.Config{Script: fakellm.Sequence(replies...)})
	ts.Setenv("MODEL", server.URL)
	ts.Setenv("MODEL_KEY", server.Key)
}

func cmdExpand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(os.Expand(ts.ReadFile(name), ts.Getenv)), 0o600))
	}
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH WANT")
	}
	if got := jsonAt(ts, args[0], args[1]); (got == args[2]) == neg {
		ts.Fatalf("%s: got %s", args[1], got)
	}
}

func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: field NAME FILE PATH")
	}
	ts.Setenv(args[0], jsonAt(ts, args[1], args[2]))
}

func cmdFreePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	ts.Setenv(args[0], fmt.Sprint("127.0.0.1:", testkit.FreePort(ts)))
}

func cmdMove(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: move FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s: got no %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o600))
}

// jsonAt returns the value at a.0.b of a file.
func jsonAt(ts *testscript.TestScript, file, path string) string {
	var value any
	if err := json.Unmarshal([]byte(ts.ReadFile(file)), &value); err != nil {
		ts.Fatalf("%s: %v", file, err)
	}
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				ts.Fatalf("%s: got no %s in %v", path, step, v)
			}
			value = v[i]
		default:
			ts.Fatalf("%s: got no %s in %v", path, step, v)
		}
	}
	return fmt.Sprint(value)
}
