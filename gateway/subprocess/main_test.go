//go:build unix

package subprocess_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/gateway/subprocess"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// TestMain makes the test binary act as the supervisor, as the parent process that a test kills,
// and as the servers of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(subprocess.Supervise(context.Background(), os.Args[2:]))
		case "parent":
			runParent(os.Args[2:])
		case "server":
			runServer(os.Args[2])
		}
	}
	goleak.VerifyTestMain(m)
}

// runParent starts a server and waits to be killed.
func runParent(command []string) {
	p, err := subprocess.Start(subprocess.Config{Supervisor: []string{os.Args[0], "supervise"}, Command: command})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, _ = io.Copy(os.Stdout, p.Output)
	os.Exit(0)
}

// runServer prints a line with its process id and that of a child, and then behaves as requested:
// "echo" echoes lines, "stubborn" ignores the end of its input and SIGTERM, "orphan" exits before a
// child that ignores SIGTERM, "obedient" exits at the end of its input and leaves such a child,
// "flood" writes to stderr, "env" prints its environment, "mute" closes its output.
func runServer(behavior string) {
	if behavior == "stubborn" || behavior == "child" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	if behavior == "child" {
		fmt.Println("SIGTERM is ignored")
		select {}
	}
	pids := []string{fmt.Sprint(os.Getpid())}
	if behavior == "stubborn" || behavior == "orphan" || behavior == "obedient" {
		child := exec.Command(os.Args[0], "server", "child")
		ready, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err == nil {
			_, err = ready.Read(make([]byte, 1))
		}
		if err != nil {
			panic(err)
		}
		pids = append(pids, fmt.Sprint(child.Process.Pid))
	}
	fmt.Println("starting …")
	fmt.Printf("{\"pids\":[%s]}\n", strings.Join(pids, ","))
	switch behavior {
	case "mute":
		_ = os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "stubborn":
		select {}
	case "orphan":
		os.Exit(3)
	case "flood":
		line := strings.Repeat("x", 1000) + "\n"
		for range 20_000 {
			fmt.Fprint(os.Stderr, line)
		}
		fmt.Fprint(os.Stderr, "the end")
		fmt.Println(`{"flooded":true}`)
	case "long line":
		out := bufio.NewWriter(os.Stdout)
		fmt.Fprint(out, `{"x":"`)
		for range 100 << 10 {
			fmt.Fprint(out, strings.Repeat("x", 1<<10))
		}
		fmt.Fprintln(out, `"}`)
		_ = out.Flush()
	case "env":
		env, err := strictjson.Marshal(os.Environ())
		if err != nil {
			panic(err)
		}
		fmt.Println(string(env))
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(lines.Text())
	}
	os.Exit(0)
}
