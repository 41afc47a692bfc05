package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

type routeFlags struct {
	routerflags.Config
	routerflags.Server

	inputs   []string
	agent    string
	locale   string
	session  string
	choose   string
	fallback string
	timeout  time.Duration
	dryRun   bool
	explain  bool
}

func newRouteCommand() *cobra.Command {
	var flags routeFlags
	cmd := &cobra.Command{
		Use:   `route "TEXT"`,
		Short: "Route one request, in process or on a running router",
		Long: "Route one request and print its answer, on the running router at --url (or CAPROUTER_URL), or else in\n" +
			"this process with the configured registry. If TEXT is -, it is read from standard input.\n\n" +
			"Exit code 0 if the request was completed at least partially, else 1; also 1 if fallback policy A has no\n" +
			"model to answer. Incomplete parts are explained on standard error, for example a clarification with its\n" +
			"options: answer it with the same request and --choose.",
		Example: `  caprouter route "review this python code" --input code=@app.py
  caprouter route "quanto custou o databricks?" --explain --dry-run
  caprouter route "cost analysis of azure" --url http://127.0.0.1:8080 --json
  caprouter route "make databricks cheaper" --url http://127.0.0.1:8080 --choose "$REQUEST_ID=2"
  git diff | caprouter route - --agent quality_agent`,
		Args: cmdline.ArgsBetween("one TEXT, in quotes", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return route(cmd, &flags, args[0]) },
	}
	flags.Config.Register(cmd, false)
	flags.Server.Register(cmd)
	f := cmd.Flags()
	f.Lookup("url").Usage = "`URL` of a running router (default $CAPROUTER_URL; without either, route in this process)"
	f.StringArrayVar(&flags.inputs, "input", nil, "input for the agent, `NAME=VALUE` or NAME=@FILE (repeatable)")
	f.StringVar(&flags.agent, "agent", "", "consider only the agent with this `ID`")
	f.StringVar(&flags.locale, "locale", "", "`LANGUAGE` of the text, e.g. pt-BR")
	f.StringVar(&flags.session, "session", "", "`ID` of the conversation on a running router")
	f.StringVar(&flags.choose, "choose", "", "answer the clarification of a running router with `REQUEST=OPTION`")
	f.StringVar(&flags.fallback, "fallback", "", "`POLICY` if no agent is eligible: B (refuse), or that of the registry, which is the default")
	cmdline.AddDurationFlag(cmd, &flags.timeout, "timeout", time.Millisecond, contract.MaxTimeoutMS*time.Millisecond, "maximum `TIME` of the request, e.g. 10s (default dispatch.timeout_ms)")
	f.BoolVar(&flags.dryRun, "dry-run", false, "decide without dispatching")
	f.BoolVar(&flags.explain, "explain", false, "print the decision: model, classification, scores, gates, tasks")
	f.BoolVar(&flags.AsJSON, "json", false, "print the response as JSON")
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("fallback", cobra.FixedCompletions(
		[]cobra.Completion{"A", "B", "C"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func route(cmd *cobra.Command, flags *routeFlags, text string) error {
	req, err := flags.newRequest(cmd, text)
	if err != nil {
		return err
	}
	base, err := flags.routerURL(cmd)
	if err != nil {
		return err
	}
	resp, err := flags.sendRequest(cmd, base, req)
	if err != nil {
		return err
	}
	if err := flags.printResult(cmd, resp, req.Content.Prompt, base); err != nil {
		return err
	}
	switch resp.Status {
	case contract.StatusAccepted, contract.StatusCompleted, contract.StatusPartial:
		if !resp.Data.Degraded {
			return nil
		}
	}
	return cmdline.SilentError{}
}

// printResult prints the response in the requested form.
func (f *routeFlags) printResult(cmd *cobra.Command, resp *contract.Response, prompt, base string) error {
	out := cmd.OutOrStdout()
	switch {
	case f.AsJSON:
		return cmdline.PrintJSON(out, resp)
	case f.explain:
		explain.PrintResponse(out, resp, explain.Options{Options: terminal.DetectOptions(out), Prompt: prompt, Base: base, Teach: f.teachCommand(prompt, base)})
		return nil
	}
	return explain.PrintAnswer(out, cmd.ErrOrStderr(), resp, base, f.teachCommand(prompt, base))
}

// maxTaughtPrompt is the length of a prompt, in bytes, that a command repeats.
const maxTaughtPrompt = 80

// teachCommand returns the command that writes the prompt into the registry as an example.
func (f *routeFlags) teachCommand(prompt, base string) string {
	text := `"…"`
	if prompt = strings.TrimSpace(prompt); len(prompt) <= maxTaughtPrompt && terminal.Printable(prompt) == prompt && !strings.Contains(prompt, "\n") {
		text = cmdline.QuoteForShell(prompt)
		if !strings.ContainsAny(prompt, "\"$`\\!") {
			text = `"` + prompt + `"`
		}
	}
	words := []string{"caprouter teach", text}
	for _, flag := range []struct{ name, value string }{{"config", f.ConfigFile}, {"registry", f.RegistryFile}} {
		if flag.value != "" {
			words = append(words, "--"+flag.name, cmdline.QuoteForShell(flag.value))
		}
	}
	if base != "" {
		words = append(words, "(where the registry file of the router is; if the agent registers itself, add the text to the examples of its registration)")
	}
	return strings.Join(words, " ")
}

// sendRequest sends the request to the router at base, or runs a router in this
// process if base is "".
func (f *routeFlags) sendRequest(cmd *cobra.Command, base string, req *contract.Request) (*contract.Response, error) {
	if base != "" {
		c, err := restclient.New(base, f.TokenEnv)
		if err != nil {
			return nil, err
		}
		return c.RouteRequest(cmd.Context(), req)
	}
	if f.choose != "" || f.session != "" {
		return nil, cmdline.UsageErrorf(cmd, "--choose and --session need a running router: name it with --url")
	}
	cfg, err := f.LoadConfig()
	if err != nil {
		return nil, err
	}
	cfg.Telemetry.LogLevel = "error" // the answer is the output, not the log
	resp, err := app.RouteOnce(showTraining(cmd), cfg, app.Options{LogOutput: cmd.ErrOrStderr(), Version: buildVersion()}, req)
	return resp, routerflags.ExplainMissingRegistry(err, &cfg)
}

// routerURL returns the URL of the router, or "" for a router in this process. Flags
// for a router in this process override a URL in the environment.
func (f *routeFlags) routerURL(cmd *cobra.Command) (string, error) {
	for _, name := range []string{"config", "registry", "data-dir"} {
		switch {
		case !cmd.Flags().Changed(name):
		case f.URL != "":
			return "", cmdline.UsageErrorf(cmd, "--%s is for a router in this process, and --url names one that runs: leave one out", name)
		default:
			return "", nil
		}
	}
	return f.RouterURL(cmd), nil
}
