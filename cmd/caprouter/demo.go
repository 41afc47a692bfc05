package main

import (
	"cmp"
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

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/run"
)

func newDemoCommand() *cobra.Command {
	d := demonstration{llm: app.DefaultConfig().LLM}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a router, three agents and real requests, all embedded",
		Long: "Start a router and three sample agents on loopback, route requests in several languages over HTTP,\n" +
			"print each decision, then keep serving. Nothing is left behind.\n\n" +
			"The embedded lexical classifier needs nothing. With GEMINI_API_KEY in the environment a real model\n" +
			"classifies instead; no other variable and no configuration file has a say.",
		Example: `  caprouter demo
  caprouter demo --once
  GEMINI_API_KEY=… caprouter demo --once`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out, d.log, d.key = cmd.OutOrStdout(), cmd.ErrOrStderr(), os.Getenv(d.llm.APIKeyEnv)
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&d.once, "once", false, "exit after the requests instead of serving on")
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:0", "loopback `HOST:PORT` of the router; port 0 picks one")
	return cmd
}

// demonstration is one run of the demo.
type demonstration struct {
	out, log io.Writer
	listen   string
	once     bool
	llm      app.LLMConfig
	key      string // of the model; "" = there is none
}

// run starts agents and router, and undoes all of it at the end. The router's
// listener opens first: agents must know where its keys are, and the registry
// must know where the agents are.
func (d *demonstration) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "caprouter-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", d.listen)
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
	server, err := d.startRouter(ctx, dir, listener, urls)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	d.introduce(base, urls)
	if err = d.requests(ctx, base, filepath.Join(dir, dataDirName)); err != nil || d.once {
		stop()
	} else {
		fmt.Fprintf(d.out, "Serving on %s until Ctrl-C. Try in another terminal:\n  %s\n", base, demoTry(base))
	}
	return errors.Join(err, server.Wait())
}

// dataDirName is the router's data directory, in the demo's.
const dataDirName = "data"

// startRouter starts what `caprouter serve` would, with its files in dir. All it
// learns from the environment is the model's key.
func (d *demonstration) startRouter(ctx context.Context, dir string, listener net.Listener, urls demo.URLs) (*app.Server, error) {
	cfg := app.DefaultConfig()
	cfg.Listen = listener.Addr().String()
	cfg.DataDir = filepath.Join(dir, dataDirName)
	cfg.Registry.File = filepath.Join(dir, "capabilities.yaml")
	cfg.LLM = d.llm
	cfg.Telemetry.LogLevel = "warn" // the decisions are printed
	if d.key != "" {
		cfg.Telemetry.LogLevel = "error" // what a model does wrong, they say as well
	}
	if err := os.WriteFile(cfg.Registry.File, demo.Registry(urls), 0o600); err != nil {
		return nil, err
	}
	return app.Start(ctx, cfg, app.Options{
		LogOutput: d.log, Version: buildVersion(), Listener: listener,
		LookupEnv: func(name string) (string, bool) { return d.key, d.key != "" && name == d.llm.APIKeyEnv },
	})
}

func (d *demonstration) introduce(base string, urls demo.URLs) {
	fmt.Fprintf(d.out, "caprouter %s on %s, with %s:\n", buildVersion(), base, count(len(urls), "sample agent"))
	p := newPage(printOptions(d.out, ""))
	for _, id := range slices.Sorted(maps.Keys(urls)) {
		p.raw(indent, fmt.Sprintf("%-14s %s", id, urls[id]))
	}
	how := fmt.Sprintf("Requests are classified by the embedded lexical classifier; with %s in the environment a real model does it.", d.llm.APIKeyEnv)
	if d.key != "" {
		how = fmt.Sprintf("%s is set: requests are classified by %s %s, which need not decide as the lexical classifier does.",
			d.llm.APIKeyEnv, d.llm.Provider, cmp.Or(d.llm.Model, llm.DefaultModel))
	}
	for _, line := range wrap(how, p.width) {
		p.raw("", line)
	}
	fmt.Fprintln(d.out, p.String())
}

// requests sends the scripted requests over HTTP and prints each decision. The
// lexical classifier has to end each as the script says. A model decides for
// itself: where it differs that is said, and nothing has failed.
func (d *demonstration) requests(ctx context.Context, base, dataDir string) error {
	c, err := newClient(base, "")
	if err != nil {
		return err
	}
	defer c.http.CloseIdleConnections()
	script := demo.Steps(d.key != "")
	if err := d.scripted(ctx, c, base, script); err != nil {
		return err
	}
	if err := d.unattended(ctx, c, len(script)+1); err != nil {
		return fmt.Errorf("asynchronous request: %w", err)
	}
	if err := d.proposes(ctx, filepath.Dir(dataDir), len(script)+2); err != nil {
		return fmt.Errorf("policy C: %w", err)
	}
	if err := d.guards(ctx, filepath.Dir(dataDir), len(script)+3); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	return d.verifies(ctx, dataDir, len(script)+4)
}

// scripted sends the requests of the script, one after the other.
func (d *demonstration) scripted(ctx context.Context, c *client, base string, script []demo.Step) error {
	var err error
	var last *contract.Response
	for i, step := range script {
		opts := printOptions(d.out, step.Request.Content.Prompt)
		opts.base = base
		printStep(d.out, fmt.Sprintf("%d. %s", i+1, step.Title), step.Explanation, opts)
		if step.ChosenIntent != "" && !step.ChooseOption(last) {
			if err := d.differs(&step, "the router has not asked, so there is nothing to choose"); err != nil {
				return err
			}
			continue
		}
		if last, err = c.route(ctx, &step.Request); err != nil {
			return fmt.Errorf("%s: %w", step.Title, err)
		}
		printResponse(d.out, last, opts)
		if last.Status != step.Status {
			if err := d.differs(&step, fmt.Sprintf("the answer is %s, not %s", last.Status, step.Status)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(d.out)
	}
	return nil
}

// differs is about a step that does not end as the script says.
func (d *demonstration) differs(step *demo.Step, how string) error {
	if d.key == "" {
		return fmt.Errorf("%s: %s", step.Title, how)
	}
	fmt.Fprintf(d.out, "%s(The lexical classifier would end this otherwise: %s.)\n\n", indent, how)
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
