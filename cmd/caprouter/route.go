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

	inputs  []string
	agent   string
	locale  string
	timeout time.Duration
	dryRun  bool
	explain bool
	asJSON  bool
}

func newRouteCommand() *cobra.Command {
	var flags routeFlags
	cmd := &cobra.Command{
		Use:   `route "TEXT"`,
		Short: "Route one request, in process or on a running router",
		Long: "Route one request and print its answer. With --url (or CAPROUTER_URL) a running router does it, else it\n" +
			"happens in this process on the registry of the configuration. TEXT may be - for standard input.\n\n" +
			"Exit code 0 when the request was completed, at least in part; 1 otherwise. What was not done, and\n" +
			"what to do about it, is on standard error.",
		Example: `  caprouter route "review this python code" --input code=@app.py
  caprouter route "quanto custou o databricks?" --explain --dry-run
  caprouter route "cost analysis of azure" --url http://127.0.0.1:8080 --json
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
	f.DurationVar(&flags.timeout, "timeout", 0, "most `TIME` the request may take, e.g. 10s")
	f.BoolVar(&flags.dryRun, "dry-run", false, "decide, but dispatch nothing")
	f.BoolVar(&flags.explain, "explain", false, "print the whole decision: classification, scores, gates, tasks")
	f.BoolVar(&flags.asJSON, "json", false, "print the response as JSON")
	return cmd
}

func route(cmd *cobra.Command, flags *routeFlags, text string) error {
	req, err := flags.request(cmd, text)
	if err != nil {
		return err
	}
	resp, err := flags.send(cmd, req)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	switch {
	case flags.asJSON:
		if err := printJSON(out, resp); err != nil {
			return err
		}
	case flags.explain:
		printResponse(out, resp, printOptions(out, req.Content.Prompt))
	default:
		if err := printAnswer(out, cmd.ErrOrStderr(), resp); err != nil {
			return err
		}
	}
	switch resp.Status {
	case contract.StatusAccepted, contract.StatusCompleted, contract.StatusPartial:
		return nil
	}
	return silentError{}
}

// send lets the named router handle the request, else one in this process.
func (f *routeFlags) send(cmd *cobra.Command, req *contract.Request) (*contract.Response, error) {
	base, err := f.server(cmd)
	if err != nil {
		return nil, err
	}
	if base != "" {
		c, err := newClient(base, f.tokenEnv)
		if err != nil {
			return nil, err
		}
		return c.route(cmd.Context(), req)
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
