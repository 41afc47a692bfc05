// Command caprouter is the capability router: it classifies requests in plain
// language, selects eligible agents by fixed arithmetic over a registry of
// capabilities, dispatches the tasks, and returns one answer.
//
//	caprouter demo                       run a demonstration
//	caprouter init                       write files to start from
//	caprouter serve --registry FILE      run the router
//	caprouter route "review this code"   send a request
//
// This package parses flags and prints results, with one file per subcommand. What
// several commands share is below internal/cli.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/run"
)

func main() {
	ignoreFileLimit()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	group := run.New(ctx)
	// The first signal starts a graceful shutdown, the second ends the process.
	group.Go("give signals back", func(ctx context.Context) error {
		<-ctx.Done()
		stop()
		return nil
	})
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	group.Stop(nil)
	_ = group.Wait() // its goroutines return nil
	os.Exit(code)
}

func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRootCommand()
	root.SetArgs(expandGoal(args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	return cmdline.ReportError(errOut, root.ExecuteContext(ctx))
}
