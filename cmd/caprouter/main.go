// Command caprouter is the capability router: it takes requests in plain
// language, decides by a registry of capabilities which agents may serve them,
// dispatches the work and returns one answer.
//
//	caprouter demo                       see it work
//	caprouter init                       write files to start from
//	caprouter serve --registry FILE      run it
//	caprouter route "review this code"   ask it
//
// This package parses flags and prints; everything else is in internal/app.
// One file per subcommand; explain.go, page.go and text.go print decisions.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/caprouter/caprouter/internal/run"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	group := run.New(ctx)
	// The first signal ends the work in good order, the next ends the process.
	group.Go("give signals back", func(ctx context.Context) error {
		<-ctx.Done()
		stop()
		return nil
	})
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	group.Stop(nil)
	_ = group.Wait() // it has nothing to fail at
	os.Exit(code)
}

// Exit codes: 1 is something that went wrong, 2 a command line that cannot be
// understood.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	return report(errOut, root.ExecuteContext(ctx))
}
