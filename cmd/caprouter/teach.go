package main

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/run"
)

type teachFlags struct {
	routerflags.Config
	routerflags.Server

	filter routerflags.DecisionFilter
	all    bool
	expect []string // agents, or answerNone
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
  caprouter teach "tune the cluster" --expect quality_agent --expect-intent databricks_review
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
			case len(flags.expect) > 1 && slices.Contains(flags.expect, answerNone):
				return cmdline.UsageErrorf(cmd, "--expect none stands alone, without agents")
			case flags.all && flags.filter.Selects():
				return cmdline.UsageErrorf(cmd, "--all selects every decision: leave out the filters, except --since and --limit")
			}
			return teach(cmd, args, &flags)
		},
	}
	routerflags.AddConfigFlag(cmd, &flags.ConfigFile)
	routerflags.AddRegistryFlag(cmd, &flags.RegistryFile)
	addCaseFileFlag(cmd, &flags.file)
	cmd.Flags().StringSliceVar(&flags.expect, "expect", nil, "`AGENT` that is right for TEXT, or none, instead of the question (repeatable)")
	cmd.Flags().StringSliceVar(&flags.intent, "expect-intent", nil, "`INTENT` of the agent of --expect, instead of the question (repeatable for several agents)")
	cmd.Flags().BoolVar(&flags.all, "all", false, "all decisions of --since, also confident ones")
	flags.Server.Register(cmd)
	flags.filter.Register(cmd)
	return cmd
}

func teach(cmd *cobra.Command, args []string, flags *teachFlags) error {
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
	if err := checkCaseFile(cmd, flags.file, snapshot); err != nil {
		return err
	}
	if err := checkExpected(flags.expect, snapshot); err != nil {
		return err
	}
	if err := checkIntents(flags.intent, flags.expect, snapshot); err != nil {
		return err
	}
	var list []reading
	if len(args) == 1 {
		list, err = readText(cmd, cfg, args[0])
	} else {
		list, err = flags.readDecisions(cmd)
	}
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if len(args) == 0 {
		fmt.Fprintln(out, flags.describeSelection(len(list)))
	}
	if len(list) == 0 {
		return nil
	}
	answers := run.New(cmd.Context())
	defer answers.Stop(nil) // Wait would block while standard input is read
	catalogue := snapshot.Catalogue
	t := teacher{
		lexical:  sync.OnceValue(func() *lexical.Model { return lexical.Train(classifier.BuildCorpus(catalogue)) }),
		dialog:   newDialog(answers, cmd.InOrStdin(), out),
		registry: routerflags.RegistryFile(&cfg), cases: flags.file, expect: flags.expect, intents: flags.intent,
		check: func(added string) error { return checkCases(cmd, flags, added) },
		findBroken: func(registry *capabilities.Snapshot) ([]golden.CaseResult, error) {
			return findBrokenCases(cmd, flags, registry)
		},
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if len(list) > 1 {
			fmt.Fprintf(out, "%d of %d\n\n", i+1, len(list))
		}
		if goOn, err := t.teachReading(cmd.Context(), &list[i]); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// reading is a prompt and the decision on it.
type reading struct {
	prompt   string
	response contract.Response // status, decision and feedback
}

// readText routes the text in this process as a dry run.
func readText(cmd *cobra.Command, cfg config.Config, text string) ([]reading, error) {
	cfg.Telemetry.LogLevel = "error"
	req := &contract.Request{Content: contract.Content{Prompt: text}, Options: contract.Options{DryRun: true, Explain: true}}
	resp, err := app.RouteOnce(cmd.Context(), cfg, app.Options{LogOutput: cmd.ErrOrStderr(), Version: buildVersion()}, req)
	if err != nil {
		return nil, routerflags.ExplainMissingRegistry(err, &cfg)
	}
	return []reading{{text, contract.Response{Status: resp.Status, Decision: resp.Decision, Data: contract.ResponseData{DryRun: true}}}}, nil
}

// uncertain is the confidence below which decisions are shown if no filter is set.
const uncertain = 0.7

// readDecisions returns decisions of a running router, newest first, one for each prompt
// that has no case.
func (f *teachFlags) readDecisions(cmd *cobra.Command) ([]reading, error) {
	c, err := f.NewClient(cmd)
	if err != nil {
		return nil, err
	}
	filters := []routerflags.DecisionFilter{f.filter}
	if !f.all && !f.filter.Selects() {
		low, fallback, misroute := f.filter, f.filter, f.filter
		low.Below, fallback.Fallback, misroute.Feedback = uncertain, contract.AnyFallback, string(contract.VerdictMisroute)
		filters = []routerflags.DecisionFilter{low, fallback, misroute}
	}
	var entries []contract.DecisionEntry
	for i := range filters {
		query, err := filters[i].NewQuery(cmd)
		if err != nil {
			return nil, err
		}
		found, err := c.ListDecisions(cmd.Context(), query)
		if err != nil {
			return nil, err
		}
		entries = append(entries, found...)
	}
	slices.SortStableFunc(entries, func(a, b contract.DecisionEntry) int { return b.At.Compare(a.At) })
	known, err := readInputs(f.file)
	if err != nil {
		return nil, err
	}
	var list []reading
	for i := range entries {
		e := &entries[i]
		prompt := strings.TrimSpace(e.Prompt)
		if prompt == "" || known[prompt] {
			continue
		}
		known[prompt] = true
		list = append(list, reading{e.Prompt, contract.Response{RequestID: e.RequestID, Status: e.Status, Decision: e.Decision, Feedback: e.Feedback}})
	}
	return list[:min(len(list), f.filter.Limit)], nil
}

// describeSelection returns which decisions of a router are shown.
func (f *teachFlags) describeSelection(n int) string {
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
	return text + fmt.Sprintf(" with a confidence below %.1f, with a fallback or with feedback misroute; --all shows confident ones as well", uncertain)
}

// readInputs returns the inputs of a case file, which need not exist.
func readInputs(file string) (map[string]bool, error) {
	data, err := localfile.ReadForEdit(file)
	if err != nil {
		return nil, err
	}
	cases, _ := golden.ReadYAML(file, data, nil) // mistakes are reported when a case is added
	inputs := map[string]bool{}
	for i := range cases {
		inputs[strings.TrimSpace(cases[i].Input)] = true
	}
	return inputs, nil
}

// checkCaseFile reports cases that do not fit the registry, for example because they are
// for another one: no case can be added to their file. Other mistakes are reported when
// a case is added.
func checkCaseFile(cmd *cobra.Command, file string, registry *capabilities.Snapshot) error {
	data, err := localfile.ReadForEdit(file)
	if err != nil {
		return err
	}
	if _, err := golden.ReadYAML(file, data, nil); err != nil {
		return nil //nolint:nilerr // a file without cases is no mistake here
	}
	_, err = golden.ReadYAML(file, data, golden.NewDeclaredNames(registry))
	if err != nil {
		cmdline.PrintError(cmd.ErrOrStderr(), file+" has cases that do not fit the registry: correct or remove them, or name another file with --file")
	}
	return err
}

// checkExpected rejects expected agents that the registry does not have.
func checkExpected(expected []string, s *capabilities.Snapshot) error {
	var ids []string
	for _, a := range s.Entries() {
		ids = append(ids, a.ID)
	}
	for _, id := range expected {
		if id != answerNone && !slices.Contains(ids, id) {
			return errors.New("--expect: " + explainAgent(id, ids, s.Fleet.Grants))
		}
	}
	return nil
}

// checkIntents rejects intents that no expected agent declares, and several of one agent.
func checkIntents(intents, expected []string, s *capabilities.Snapshot) error {
	var declared []string
	for _, id := range expected {
		if a := s.Entry(id); a != nil {
			declared = append(declared, a.Match.Intent...)
		}
	}
	for _, intent := range intents {
		if !slices.Contains(declared, intent) {
			return errors.New("--expect-intent: " + suggestChoice("intent of "+strings.Join(expected, " and "), intent, declared))
		}
	}
	for _, id := range expected {
		if named := intentsOf(s.Entry(id), intents); len(named) > 1 {
			return fmt.Errorf("--expect-intent: %s are intents of %s: name one of them", strings.Join(named, " and "), id)
		}
	}
	return nil
}

// intentsOf returns those of the intents that the agent declares.
func intentsOf(agent *contract.RegistryEntry, intents []string) []string {
	return slices.DeleteFunc(slices.Clone(intents), func(intent string) bool {
		return agent == nil || !slices.Contains(agent.Match.Intent, intent)
	})
}

// checkCases runs the cases of the file over the changed registry, and prints failures and whether
// the added case passes. added is its id, or "" if there is none.
func checkCases(cmd *cobra.Command, flags *teachFlags, added string) error {
	g, err := (&goldenFlags{Config: flags.Config}).openCases(cmd, []string{flags.file}, app.GoldenLexical)
	if err != nil {
		return err
	}
	defer g.Close()
	r, err := golden.Run(cmd.Context(), g.Config)
	if err != nil {
		return err
	}
	if err := printReport(cmd.OutOrStdout(), r, false); err != nil {
		return err
	}
	p := terminal.NewPrinter(terminal.DetectLineOptions(cmd.OutOrStdout()))
	for i := range r.Cases {
		if c := &r.Cases[i]; c.ID == added {
			printOutcome(p, "the case "+terminal.OneLine(c.ID), c)
		}
	}
	_, err = io.WriteString(cmd.OutOrStdout(), p.String())
	return err
}

// teacher asks for corrections and writes them.
type teacher struct {
	dialog          *dialog
	registry, cases string                   // files
	lexical         func() *lexical.Model    // of the registry before the first change
	expect          []string                 // answer to the question for the agent; empty if it is asked
	intents         []string                 // answers to the questions for intents
	check           func(added string) error // runs after each change, with the id of the new case or ""
	// findBroken returns the cases that pass now, and fail with the registry.
	findBroken func(*capabilities.Snapshot) ([]golden.CaseResult, error)
}

// teachReading asks which agent is right for one reading and writes the correction. It
// reports whether the user wants to see further readings.
func (t *teacher) teachReading(ctx context.Context, r *reading) (goOn bool, err error) {
	before, err := localfile.ReadForEdit(t.registry)
	if err != nil {
		return false, err
	}
	snapshot, err := capabilities.Parse(t.registry, before)
	if err != nil {
		return false, err
	}
	explain.PrintReading(t.dialog.out, &r.response, explain.Options{Options: terminal.DetectOptions(t.dialog.out), Prompt: r.prompt})
	answer, likely := t.expect, t.confidences(r)
	if len(answer) == 0 {
		agents := expectedFirst(orderAgents(snapshot, r.response.Decision, likely), r.response.Feedback)
		answer, err = t.dialog.chooseAgents(ctx, agents, likely, snapshot.Fleet.Grants)
		if err != nil || answer[0] == answerSkip || answer[0] == answerQuit {
			return err == nil && answer[0] == answerSkip, err
		}
	}
	added := correction{prompt: r.prompt}
	if answer[0] != answerNone {
		added.agents = answer
	}
	if len(added.agents) == 1 {
		intent, err := t.chooseIntent(ctx, snapshot.Entry(answer[0]), likely)
		if err != nil || intent == answerSkip || intent == answerQuit {
			return intent == answerSkip, err
		}
		added.examples = []example{{answer[0], intent, r.prompt}}
	}
	if masked := findPlaceholders(r.prompt); len(masked) > 0 {
		question := fmt.Sprintf("The text is masked: %s. Type it with invented values, or Enter to keep it: ", strings.Join(masked, ", "))
		text, err := t.dialog.ask(ctx, question)
		if err != nil {
			return false, err
		}
		added.prompt = cmp.Or(text, r.prompt)
		for i := range added.examples {
			added.examples[i].text = added.prompt
		}
	}
	if len(added.agents) > 1 {
		var left string
		added.examples, left, err = t.chooseExamples(ctx, snapshot, r, added.prompt, added.agents, likely)
		if err != nil || left == answerSkip || left == answerQuit {
			return left == answerSkip, err
		}
	}
	edits, id, err := t.planEdits(before, snapshot, &added)
	if err != nil || len(edits) == 0 {
		return err == nil, err
	}
	if err := t.printBroken(edits); err != nil {
		return false, err
	}
	if yes, err := t.dialog.confirm(ctx, "Write? [Y/n] "); err != nil || !yes {
		return err == nil, err
	}
	if err := localfile.ApplyEdits(ctx, edits); err != nil {
		return false, err
	}
	for _, e := range edits {
		fmt.Fprintf(t.dialog.out, "wrote %s\n", e.Path)
	}
	return true, t.check(id)
}

// confidences returns the confidence in the likeliest intents of a reading. A model that finds
// no intent gives none: then they are those of the lexical classifier.
func (t *teacher) confidences(r *reading) map[string]float64 {
	likely := map[string]float64{}
	var source contract.Source
	add := func(scores []contract.IntentScore) {
		for _, s := range scores {
			likely[s.Intent] = max(likely[s.Intent], s.Confidence)
		}
	}
	if d := r.response.Decision; d != nil {
		c := &d.Classification
		source = c.Source
		add(c.Alternatives)
		add([]contract.IntentScore{{Intent: c.Intent, Confidence: c.Confidence}})
		for i := range c.Subtasks {
			add(c.Subtasks[i].Alternatives)
			add([]contract.IntentScore{{Intent: c.Subtasks[i].Intent, Confidence: c.Subtasks[i].Confidence}})
		}
	}
	delete(likely, contract.Unknown)
	delete(likely, "") // of a subtask with the intent of the request
	if len(likely) == 0 && source != contract.SourceLexical {
		p := t.lexical().Classify(r.prompt)
		add(append(p.Alternatives, contract.IntentScore{Intent: p.BestIntent, Confidence: p.Confidence}))
	}
	return likely
}

// expectedFirst moves the agents that feedback expects to the front.
func expectedFirst(agents []*contract.RegistryEntry, feedback []contract.Feedback) []*contract.RegistryEntry {
	expected := expectedAgents(feedback)
	var first, others []*contract.RegistryEntry
	for _, a := range agents {
		if slices.Contains(expected, a.ID) {
			first = append(first, a)
		} else {
			others = append(others, a)
		}
	}
	return append(first, others...)
}

// orderAgents returns the agents of the registry: those that were considered first, then those
// with the likeliest intents.
func orderAgents(s *capabilities.Snapshot, d *contract.Decision, likely map[string]float64) []*contract.RegistryEntry {
	rank := map[string]int{}
	if d != nil {
		for i := range d.Candidates {
			if id := d.Candidates[i].AgentID; rank[id] == 0 {
				rank[id] = len(d.Candidates) - i
			}
		}
	}
	confidence := func(a *contract.RegistryEntry) (best float64) {
		for _, intent := range a.Match.Intent {
			best = max(best, likely[intent])
		}
		return best
	}
	agents := s.Entries()
	slices.SortStableFunc(agents, func(a, b *contract.RegistryEntry) int {
		return cmp.Or(cmp.Compare(rank[b.ID], rank[a.ID]), cmp.Compare(confidence(b), confidence(a)))
	})
	return agents
}
