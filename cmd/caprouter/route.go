package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
)

// routeFlags are the flags of `caprouter route`.
type routeFlags struct {
	configFlags
	serverFlags

	inputs   []string
	agent    string
	locale   string
	session  string
	choose   string
	fallback string
	timeout  time.Duration
	dryRun   bool
	explain  bool
	asJSON   bool
}

func newRouteCommand() *cobra.Command {
	var flags routeFlags
	cmd := &cobra.Command{
		Use:   `route "TEXT"`,
		Short: "Route one request, in process or on a running router",
		Long: "Route one request and print its answer. With --url (or CAPROUTER_URL) a running router does it, else it\n" +
			"happens in this process on the registry of the configuration. TEXT may be - for standard input.\n\n" +
			"Exit code 0 when the request was completed, at least in part; 1 otherwise. What was not done, and\n" +
			"what to do about it, is on standard error: a question of the router with its options, for instance,\n" +
			"which the same request with --choose answers.",
		Example: `  caprouter route "review this python code" --input code=@app.py
  caprouter route "quanto custou o databricks?" --explain --dry-run
  caprouter route "cost analysis of azure" --url http://127.0.0.1:8080 --json
  caprouter route "optimize our databricks costs" --url http://127.0.0.1:8080 --choose "$REQUEST_ID=2"
  git diff | caprouter route - --agent quality_agent`,
		Args: takes("one TEXT, in quotes", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return route(cmd, &flags, args[0]) },
	}
	flags.configFlags.register(cmd, false)
	flags.serverFlags.register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&flags.inputs, "input", nil, "`NAME=VALUE` or NAME=@FILE, for the agent only (repeatable)")
	f.StringVar(&flags.agent, "agent", "", "consider the agent of this `ID` only")
	f.StringVar(&flags.locale, "locale", "", "`LANGUAGE` of the text, e.g. pt-BR")
	f.StringVar(&flags.session, "session", "", "`ID` of the conversation on a running router")
	f.StringVar(&flags.choose, "choose", "", "`REQUEST=OPTION` that answers a question of a running router")
	f.StringVar(&flags.fallback, "fallback", "", "`POLICY` when nobody may serve it: A (a model answers), B (say so) or C (put it on record)")
	f.DurationVar(&flags.timeout, "timeout", 0, "most `TIME` the request may take, e.g. 10s")
	f.BoolVar(&flags.dryRun, "dry-run", false, "decide, but dispatch nothing")
	f.BoolVar(&flags.explain, "explain", false, "print the whole decision: model, classification, scores, gates, tasks")
	f.BoolVar(&flags.asJSON, "json", false, "print the response as JSON")
	must(cmd.RegisterFlagCompletionFunc("fallback", cobra.FixedCompletions(
		[]cobra.Completion{"A", "B", "C"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func route(cmd *cobra.Command, flags *routeFlags, text string) error {
	req, err := flags.request(cmd, text)
	if err != nil {
		return err
	}
	base, err := flags.server(cmd)
	if err != nil {
		return err
	}
	resp, err := flags.send(cmd, base, req)
	if err != nil {
		return err
	}
	if err := flags.print(cmd, resp, req.Content.Prompt, base); err != nil {
		return err
	}
	switch resp.Status {
	case contract.StatusAccepted, contract.StatusCompleted, contract.StatusPartial:
		return nil
	}
	return silentError{}
}

// print prints the response the way the flags ask for.
func (f *routeFlags) print(cmd *cobra.Command, resp *contract.Response, prompt, base string) error {
	out := cmd.OutOrStdout()
	switch {
	case f.asJSON:
		return printJSON(out, resp)
	case f.explain:
		printResponse(out, resp, explainOptions{outputOptions: detectOutput(out), prompt: prompt, base: base})
		return nil
	}
	return printAnswer(out, cmd.ErrOrStderr(), resp, base)
}

// send lets the router at base handle the request, one in this process for "".
func (f *routeFlags) send(cmd *cobra.Command, base string, req *contract.Request) (*contract.Response, error) {
	if base != "" {
		c, err := newClient(base, f.tokenEnv)
		if err != nil {
			return nil, err
		}
		return c.route(cmd.Context(), req)
	}
	if f.choose != "" || f.session != "" {
		return nil, usagef(cmd, "--choose and --session are for a running router, named with --url: one in this process remembers nothing")
	}
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	cfg.Telemetry.LogLevel = "error" // the answer is the output, not the log
	resp, err := app.RouteOnce(cmd.Context(), cfg, app.Options{LogOutput: cmd.ErrOrStderr(), Version: buildVersion()}, req)
	return resp, missingRegistry(err, &cfg)
}

// server is the router that is to do it, "" for this process. The flags of a
// router in this process win over a server that only the environment names.
func (f *routeFlags) server(cmd *cobra.Command) (string, error) {
	for _, name := range []string{"config", "registry", "data-dir"} {
		switch {
		case !cmd.Flags().Changed(name):
		case f.url != "":
			return "", usagef(cmd, "--%s is for a router in this process, and --url names one that runs: leave one out", name)
		default:
			return "", nil
		}
	}
	return f.serverFlags.server(cmd), nil
}
