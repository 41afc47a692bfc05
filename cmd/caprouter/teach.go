package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/goldenreport"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/teach"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/run"
)

type teachFlags struct {
	routerflags.Config
	routerflags.Server

	filter routerflags.DecisionFilter
	all    bool
	yes    bool
	expect []string // agents, or teach.NoAgent
	intent []string // of these agents
	file   string
}

func newTeachCommand() *cobra.Command {
	var flags teachFlags
	cmd := &cobra.Command{
		Use:   `teach ["TEXT"]`,
		Short: "Correct readings: write an example into the registry and a golden case",
		Long: "Show how a request is read, ask which agent and intent are right, and write the request as an example\n" +
			"into the registry file and as a golden case into the case file. A running router loads the registry again\n" +
			"by itself. Comments and formatting of the files survive, and both files are written or none. The cases are\n" +
			"then run, without a model; the exit code is 0 also if the new one fails.\n\n" +
			"A request may be for several agents: the case expects all of them, and each part of the request becomes\n" +
			"an example of its agent. If the request is not split into such parts, only the case is written.\n\n" +
			"With TEXT, the request is read in this process. Without, teach walks through the decisions of the running\n" +
			"router at --url (or CAPROUTER_URL): with --all, all of them; with filters, those that they select; else\n" +
			"those with a confidence below 0.7, those that a fallback policy answered and those with feedback\n" +
			"misroute, whose expected agents are the first choices. Prompts that have a case already are left out.\n" +
			"Stored prompts are masked: type the text anew, with invented values.",
		Example: `  caprouter teach "how much did we spend on azure?"
  caprouter teach "review the module and list the cost of azure" --expect quality_agent --expect billing_agent
  caprouter teach "tune the cluster" --expect quality_agent --expect-intent databricks_review --yes
  caprouter teach
  caprouter teach --below 0.8 --since 24h --registry capabilities.yaml --file golden/cases.yaml`,
		Args: cmdline.ArgsBetween("one TEXT, in quotes", 0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && flags.filter.Intent != "":
				return cmdline.UsageErrorf(cmd, "--intent selects decisions of a router: the intent that is right for TEXT is --expect-intent")
			case len(args) == 1 && (flags.filter.Selects() || flags.URL != "" || flags.all):
				return cmdline.UsageErrorf(cmd, "TEXT is read in this process: leave it out to walk through decisions of a router")
			case len(args) == 0 && len(flags.expect) > 0:
				return cmdline.UsageErrorf(cmd, "--expect needs TEXT: decisions of a router have different right agents")
			case len(flags.intent) > 0 && len(flags.expect) == 0:
				return cmdline.UsageErrorf(cmd, "--expect-intent needs --expect: it is an intent of that agent")
			case len(flags.expect) > 1 && slices.Contains(flags.expect, teach.NoAgent):
				return cmdline.UsageErrorf(cmd, "--expect none stands alone, without agents")
			case flags.all && flags.filter.Selects():
				return cmdline.UsageErrorf(cmd, "--all selects every decision: leave out the filters, except --since and --limit")
			}
			return runTeach(cmd, args, &flags)
		},
	}
	routerflags.AddConfigFlag(cmd, &flags.ConfigFile)
	routerflags.AddRegistryFlag(cmd, &flags.RegistryFile)
	addCaseFileFlag(cmd, &flags.file)
	cmd.Flags().StringSliceVar(&flags.expect, "expect", nil, "`AGENT` that is right for TEXT, or none, instead of the question (repeatable)")
	cmd.Flags().StringSliceVar(&flags.intent, "expect-intent", nil, "`INTENT` of the agent of --expect, instead of the question (repeatable for several agents)")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "write without the last question")
	cmd.Flags().BoolVar(&flags.all, "all", false, "all decisions of --since, also confident ones")
	flags.Server.Register(cmd)
	flags.filter.Register(cmd)
	return cmd
}

func runTeach(cmd *cobra.Command, args []string, flags *teachFlags) error {
	cfg, err := flags.LoadConfig()
	if err != nil {
		return err
	}
	snapshot, err := capabilities.Load(routerflags.RegistryFile(&cfg))
	if err != nil {
		return routerflags.ExplainMissingRegistry(err, &cfg)
	}
	for _, path := range []string{routerflags.RegistryFile(&cfg), flags.file} {
		if err := localfile.CheckWritable(path); err != nil {
			return err
		}
	}
	if err := teach.CheckCaseFile(cmd.ErrOrStderr(), flags.file, snapshot); err != nil {
		return err
	}
	if err := teach.CheckExpected(flags.expect, flags.intent, snapshot); err != nil {
		return err
	}
	var list []teach.Reading
	refused := 0
	if len(args) == 1 {
		list, err = readText(cmd, cfg, args[0])
	} else {
		list, refused, err = flags.readDecisions(cmd)
	}
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if len(args) == 0 {
		fmt.Fprintln(out, flags.describeSelection(len(list), refused))
	}
	if len(list) == 0 {
		return nil
	}
	answers := run.New(cmd.Context())
	defer answers.Stop(nil) // Wait would block while standard input is read
	catalogue := snapshot.Catalogue
	t := teach.New(answers, cmd.InOrStdin(), out, teach.Config{
		Lexical: sync.OnceValue(func() *lexical.Model {
			m, err := lexical.TrainContext(showTraining(cmd), classifier.BuildCorpus(catalogue))
			if err != nil { // interrupted, which the next question returns
				return lexical.Train(lexical.Corpus{})
			}
			return m
		}),
		Registry: routerflags.RegistryFile(&cfg), Cases: flags.file, Expect: flags.expect, Intents: flags.intent, Yes: flags.yes,
		Check: func(added string) error { return checkCases(cmd, flags, added) },
		FindBroken: func(registry *capabilities.Snapshot) ([]golden.CaseResult, error) {
			return findBrokenCases(cmd, flags, registry)
		},
	})
	for i := range list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if len(list) > 1 {
			fmt.Fprintf(out, "%d of %d\n\n", i+1, len(list))
		}
		if goOn, err := t.TeachReading(cmd.Context(), &list[i]); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// readText routes the text in this process as a dry run. The prompt of the reading is masked,
// as that of a stored decision is.
func readText(cmd *cobra.Command, cfg config.Config, text string) ([]teach.Reading, error) {
	cfg.Telemetry.LogLevel = "error"
	req := &contract.Request{Content: contract.Content{Prompt: text}, Options: contract.Options{DryRun: true, Explain: true}}
	resp, err := app.RouteOnce(showTraining(cmd), cfg, app.Options{LogOutput: cmd.ErrOrStderr(), Version: buildVersion()}, req)
	if err != nil {
		return nil, routerflags.ExplainMissingRegistry(err, &cfg)
	}
	redactor, err := redact.New(cfg.Redact.RedactorConfig())
	if err != nil {
		return nil, err
	}
	prompt := redactor.StartMasking().MaskText(text)
	return []teach.Reading{{Prompt: prompt, Response: contract.Response{Status: resp.Status, Decision: resp.Decision, Data: contract.ResponseData{DryRun: true}}}}, nil
}

// uncertain is the confidence below which decisions are shown if no filter is set.
const uncertain = 0.7

// readDecisions returns decisions of a running router, newest first, one for each prompt
// that has no case. Without a filter, it counts instead the prompts that were refused only
// because of the rights of the caller.
func (f *teachFlags) readDecisions(cmd *cobra.Command) (list []teach.Reading, refused int, err error) {
	c, err := f.NewClient(cmd)
	if err != nil {
		return nil, 0, err
	}
	filters := []routerflags.DecisionFilter{f.filter}
	if !f.all && !f.filter.Selects() {
		low, fallback, misroute := f.filter, f.filter, f.filter
		low.Below, fallback.Fallback, misroute.Feedback = uncertain, contract.AnyFallback, string(contract.VerdictMisroute)
		filters = []routerflags.DecisionFilter{fallback, low, misroute}
	}
	var entries []contract.DecisionEntry
	lackAccess := map[string]bool{} // by request; false if a filter after that of fallbacks selects it
	for i := range filters {
		query, err := filters[i].NewQuery(cmd)
		if err != nil {
			return nil, 0, err
		}
		found, err := c.ListDecisions(cmd.Context(), query)
		if err != nil {
			return nil, 0, err
		}
		entries = append(entries, found...)
		for k := range found {
			if id := found[k].RequestID; len(filters) > 1 {
				lackAccess[id] = query.Fallback != "" && teach.LacksAccess(found[k].Decision)
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b contract.DecisionEntry) int { return b.At.Compare(a.At) })
	known, err := teach.ReadInputs(f.file)
	if err != nil {
		return nil, 0, err
	}
	for i := range entries {
		e := &entries[i]
		prompt := strings.TrimSpace(e.Prompt)
		if prompt == "" || known[prompt] {
			continue
		}
		known[prompt] = true
		if lackAccess[e.RequestID] {
			refused++
			continue
		}
		list = append(list, teach.Reading{Prompt: e.Prompt, Tenant: e.Tenant, Response: contract.Response{RequestID: e.RequestID, Status: e.Status, Decision: e.Decision, Feedback: e.Feedback}})
	}
	return list[:min(len(list), f.filter.Limit)], refused, nil
}

// describeSelection returns which decisions of a router are shown, n of them, and how many
// are not because the caller was refused.
func (f *teachFlags) describeSelection(n, refused int) string {
	text := "nothing to teach: no such decision without a case"
	if n > 0 {
		text = plaintext.CountNoun(n, "decision") + " without a case"
	}
	text += ", of those since " + f.filter.Since
	switch {
	case f.all:
		return text
	case f.filter.Selects():
		return text + " that the filters select"
	}
	text += fmt.Sprintf(" with a confidence below %.1f, with a fallback or with feedback misroute; --all shows confident ones as well", uncertain)
	if refused > 0 {
		text += fmt.Sprintf("\nleft out because the caller may not use the agent: %s; --fallback and --all show them", plaintext.CountNoun(refused, "decision"))
	}
	return text
}

// checkCases runs the cases of the file over the changed registry, and prints failures and whether
// the added case passes. added is its id, or "" if there is none.
func checkCases(cmd *cobra.Command, flags *teachFlags, added string) error {
	g, err := (&goldenFlags{Config: flags.Config}).openCases(cmd, []string{flags.file}, app.GoldenLexical)
	if err != nil {
		return err
	}
	defer g.Close()
	r, err := golden.Run(showTraining(cmd), g.Config)
	if err != nil {
		return err
	}
	if err := goldenreport.PrintReport(cmd.OutOrStdout(), r, false); err != nil {
		return err
	}
	p := terminal.NewPrinter(terminal.DetectLineOptions(cmd.OutOrStdout()))
	for i := range r.Cases {
		if c := &r.Cases[i]; c.ID == added {
			goldenreport.PrintOutcome(p, "the case "+terminal.OneLine(c.ID), c)
		}
	}
	_, err = io.WriteString(cmd.OutOrStdout(), p.String())
	return err
}

// findBrokenCases runs the cases of the file with the registry file and with the changed
// registry, and returns the results of those that pass with the first alone. There are none
// if the case file does not exist yet.
func findBrokenCases(cmd *cobra.Command, flags *teachFlags, changed *capabilities.Snapshot) (broken []golden.CaseResult, err error) {
	if data, err := localfile.ReadForEdit(flags.file); err != nil || data == nil {
		return nil, err
	}
	g, err := (&goldenFlags{Config: flags.Config}).openCases(cmd, []string{flags.file}, app.GoldenLexical)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	before, err := golden.Run(showTraining(cmd), g.Config)
	if err != nil {
		return nil, err
	}
	g.Config.Registry = changed
	after, err := golden.Run(showTraining(cmd), g.Config)
	if err != nil {
		return nil, err
	}
	for i := range after.Cases {
		if c := &after.Cases[i]; c.Failed() && !c.PassedDespiteMark() && i < len(before.Cases) && !before.Cases[i].Failed() {
			broken = append(broken, *c)
		}
	}
	return broken, nil
}
