package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/run"
)

func newDemoCommand() *cobra.Command {
	var once bool
	var listen string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a router, three agents and real requests, all embedded",
		Long: "Start a router and three sample agents on loopback, route requests in several languages over HTTP,\n" +
			"print each decision, then keep serving. Nothing is left behind.",
		Example: `  caprouter demo
  caprouter demo --once`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), listen, once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "exit after the requests instead of serving on")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback `HOST:PORT` of the router; port 0 picks one")
	return cmd
}

// runDemo starts agents and router, and undoes all of it at the end. The
// router's listener opens first: agents must know where its keys are, and the
// registry must know where the agents are.
func runDemo(ctx context.Context, out, errOut io.Writer, listen string, once bool) (err error) {
	dir, err := os.MkdirTemp("", "caprouter-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("%w: choose another --listen", rootCause(err))
	}
	base := "http://" + listener.Addr().String()

	agents := run.New(context.WithoutCancel(ctx)) // they outlive the router, which drains first
	defer func() {
		agents.Stop(nil)
		err = errors.Join(err, agents.Wait())
	}()
	urls, err := demo.StartAgents(ctx, agents, base+"/.well-known/jwks.json")
	if err != nil {
		return errors.Join(err, listener.Close())
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server, err := startDemoRouter(ctx, dir, listener, errOut, urls)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	introduceDemo(out, base, urls)
	if err = demoRequests(ctx, out, base); err != nil || once {
		stop()
	} else {
		fmt.Fprintf(out, "Serving on %s until Ctrl-C. Try in another terminal:\n  %s\n", base, demoTry(base))
	}
	return errors.Join(err, server.Wait())
}

// startDemoRouter starts what `caprouter serve` would, with its files in dir.
func startDemoRouter(ctx context.Context, dir string, listener net.Listener, log io.Writer, urls demo.URLs) (*app.Server, error) {
	cfg := app.DefaultConfig()
	cfg.Listen = listener.Addr().String()
	cfg.DataDir = filepath.Join(dir, "data")
	cfg.Registry.File = filepath.Join(dir, "capabilities.yaml")
	cfg.Telemetry.LogLevel = "warn" // the decisions are printed
	if err := os.WriteFile(cfg.Registry.File, demo.Registry(urls), 0o600); err != nil {
		return nil, err
	}
	return app.Start(ctx, cfg, app.Options{LogOutput: log, Version: buildVersion(), Listener: listener})
}

func introduceDemo(out io.Writer, base string, urls demo.URLs) {
	fmt.Fprintf(out, "caprouter %s on %s, with %s:\n", buildVersion(), base, count(len(urls), "sample agent"))
	p := newPage(printOptions(out, ""))
	for _, id := range slices.Sorted(maps.Keys(urls)) {
		p.raw(indent, fmt.Sprintf("%-14s %s", id, urls[id]))
	}
	fmt.Fprintln(out, p.String())
}

// demoRequests sends the scripted requests over HTTP and prints each decision.
func demoRequests(ctx context.Context, out io.Writer, base string) error {
	c, err := newClient(base, "")
	if err != nil {
		return err
	}
	defer c.http.CloseIdleConnections()
	for i, step := range demo.Requests() {
		resp, err := c.route(ctx, &step.Request)
		if err != nil {
			return fmt.Errorf("%s: %w", step.Title, err)
		}
		opts := printOptions(out, step.Request.Content.Prompt)
		printStep(out, fmt.Sprintf("%d. %s", i+1, step.Title), step.Why, opts)
		printResponse(out, resp, opts)
		fmt.Fprintln(out)
		if resp.Status != step.Want {
			return fmt.Errorf("%s: the answer is %s, not %s", step.Title, resp.Status, step.Want)
		}
	}
	return nil
}

// printStep prints what a request is there to show.
func printStep(out io.Writer, title, why string, opts printOpts) {
	p := newPage(opts)
	p.raw("", p.paint(bold, title))
	for _, line := range wrap(why, p.width) {
		p.raw("", p.paint(dim, line))
	}
	fmt.Fprint(out, p.String())
}

func demoTry(base string) string {
	return `caprouter route "Revise este código python" --explain --dry-run --url ` + base
}
