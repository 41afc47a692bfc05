package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/goldenreport"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/starter"
	"github.com/caprouter/caprouter/internal/cli/teach"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

type goldenAddFlags struct {
	routerflags.Server
	routerflags.Config
	expect              []string
	intent, input, file string
}

func newGoldenAddCommand() *cobra.Command {
	var flags goldenAddFlags
	cmd := &cobra.Command{
		Use:   "add REQUEST_ID --expect AGENT",
		Short: "Turn a decision of a running router into a golden case",
		Long: "Read the decision on a request from a running router (caprouter decisions lists them), and append a case\n" +
			"with its prompt to a YAML case file. Comments and formatting of the file survive. The stored prompt is\n" +
			"masked: replace its placeholders in the file, or pass the text with --input. The case is then run without\n" +
			"a model; the exit code is 0 also if it fails.\n\n" +
			"--expect is an agent, several agents with commas between them, or an outcome: clarify, fallback,\n" +
			"fallback_a, fallback_b, fallback_c, or none: a fallback or a question, but no agent. Without it, the agents,\n" +
			"or none, are those that feedback on the request expects, and so is the intent of an agent.",
		Example: `  caprouter golden add 0198c0de-0000-7000-8000-000000000001 --expect quality_agent
  caprouter golden add 0198c0de-0000-7000-8000-000000000001 --expect fallback --file golden/refused.yaml`,
		Args: cmdline.ArgsBetween("the id of a request", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return goldenAdd(cmd, args[0], &flags) },
	}
	routerflags.AddConfigFlag(cmd, &flags.ConfigFile)
	flags.Server.Register(cmd)
	routerflags.AddRegistryFlag(cmd, &flags.RegistryFile)
	addCaseFileFlag(cmd, &flags.file)
	cmd.Flags().StringSliceVar(&flags.expect, "expect", nil, "`AGENT` or outcome that is right (repeatable for several agents)")
	cmd.Flags().StringVar(&flags.intent, "expect-intent", "", "`INTENT` of the agent of --expect that is right")
	cmd.Flags().StringVar(&flags.input, "input", "", "`TEXT` of the case instead of the stored prompt")
	return cmd
}

func addCaseFileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "file", starter.CasesFile, "case `FILE` to which the case is added")
	cmdline.MustSucceed(cmd.MarkFlagFilename("file", cmdline.YAMLExtensions()...))
}

func goldenAdd(cmd *cobra.Command, id string, flags *goldenAddFlags) error {
	if flags.intent != "" && (len(flags.expect) != 1 || isOutcome(flags.expect[0])) {
		return cmdline.UsageErrorf(cmd, "--expect-intent needs one agent in --expect: it is an intent of that agent")
	}
	if len(flags.expect) == 0 {
		if err := flags.expectByFeedback(cmd, id); err != nil {
			return err
		}
	}
	cfg, err := flags.LoadConfig()
	if err != nil {
		return err
	}
	registry, err := capabilities.Load(routerflags.RegistryFile(&cfg))
	if err != nil {
		return routerflags.ExplainMissingRegistry(err, &cfg)
	}
	for _, word := range flags.expect {
		if len(flags.expect) > 1 && isOutcome(word) && registry.Catalogue.Agent(word) == nil {
			return cmdline.UsageErrorf(cmd, "--expect %s is an outcome: name it alone, or agents only", word)
		}
	}
	c, err := flags.NewClient(cmd)
	if err != nil {
		return err
	}
	entry, err := c.FindDecision(cmd.Context(), id)
	if err != nil {
		return err
	}
	added := golden.Case{Input: cmp.Or(flags.input, entry.Prompt), Expect: parseExpect(flags.expect)}
	added.Expect.Intent = flags.intent
	added.Tenant = teach.TenantOfCase(registry, added.Expect.Agents, entry.Tenant)
	edit, err := teach.AddCase(flags.file, &added, golden.NewDeclaredNames(registry))
	if err != nil {
		return err
	}
	if err := localfile.ApplyEdits(cmd.Context(), []localfile.Edit{edit}); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "wrote %s: case %s expects %s\n", flags.file, added.ID, strings.Join(flags.expect, ", "))
	if masked := teach.FindPlaceholders(added.Input); len(masked) > 0 {
		fmt.Fprintf(out, "the stored prompt is masked: replace %s in the file by invented values\n", strings.Join(masked, ", "))
	}
	return checkAddedCase(cmd, flags, added.ID)
}

// expectByFeedback sets --expect to the agents, or none, that the feedback on the request expects,
// and --expect-intent.
func (f *goldenAddFlags) expectByFeedback(cmd *cobra.Command, id string) error {
	c, err := f.NewClient(cmd)
	if err != nil {
		return err
	}
	entry, err := c.FindDecision(cmd.Context(), id)
	if err != nil {
		return err
	}
	if f.expect = teach.ExpectedAgents(entry.Feedback); len(f.expect) == 0 {
		return cmdline.UsageErrorf(cmd, "--expect is missing: name the agent that is right, or clarify, fallback or none")
	}
	f.intent = teach.ExpectedIntent(entry.Feedback)
	return nil
}

// checkAddedCase runs the case of the file that has the id, and prints whether it passes. A
// case that fails is no error: it contains the correct outcome.
func checkAddedCase(cmd *cobra.Command, flags *goldenAddFlags, id string) error {
	g, err := (&goldenFlags{Config: flags.Config, filter: golden.Filter{IDs: []string{id}}}).
		openCases(cmd, []string{flags.file}, app.GoldenLexical)
	if err != nil {
		return err
	}
	defer g.Close()
	r, err := golden.Run(cmd.Context(), g.Config)
	if err != nil {
		return err
	}
	p := terminal.NewPrinter(terminal.DetectLineOptions(cmd.OutOrStdout()))
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Failed() {
			goldenreport.PrintCase(p, c)
		}
		goldenreport.PrintOutcome(p, "the case", c)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), p.String())
	return err
}

// parseExpect returns the expectation of an outcome, or of agents.
func parseExpect(words []string) golden.Expect {
	if slices.Equal(words, []string{teach.NoAgent}) {
		return golden.Expect{Agents: []string{}}
	}
	if len(words) == 1 && isOutcome(words[0]) {
		return golden.Expect{Outcome: golden.Outcome(words[0])}
	}
	return golden.Expect{Outcome: golden.Dispatch, Agents: words}
}

// isOutcome reports whether the word is an outcome without agents, or none for any of them.
func isOutcome(word string) bool {
	outcomes := []golden.Outcome{golden.Clarify, golden.AnyFallback, golden.FallbackA, golden.FallbackB, golden.FallbackC}
	return word == teach.NoAgent || slices.Contains(outcomes, golden.Outcome(word))
}
