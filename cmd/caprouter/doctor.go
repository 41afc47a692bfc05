package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/doctor"
	"github.com/caprouter/caprouter/internal/plaintext"
)

func newDoctorCommand() *cobra.Command {
	var flags routerflags.Config
	var asJSON, probe bool
	timeout := 10 * time.Second
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that serve needs, with advice",
		Long: "Check what serve needs with the same flags: configuration, registry, MCP servers, data directory, address\n" +
			"and model, including whether its key is accepted. Each problem is followed by advice. The key is never\n" +
			"printed. --probe also classifies one example of the registry with the model, which takes tokens, and\n" +
			"connects to the MCP servers, which starts them, to check that they have the actions of the agents.\n\n" +
			"Exit code 1 if a check fails, 0 if there are only warnings.",
		Example: `  caprouter doctor
  caprouter doctor --config /etc/caprouter/caprouter.yaml --timeout 3s
  caprouter doctor --probe
  caprouter doctor --json`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(showTraining(cmd), timeout)
			defer cancel()
			return runDoctor(ctx, cmd.OutOrStdout(), &flags, probe, asJSON)
		},
	}
	flags.Register(cmd, true)
	cmdline.AddDurationFlag(cmd, &timeout, "timeout", time.Millisecond, 0, "maximum `TIME` of the checks over the network")
	cmd.Flags().BoolVar(&probe, "probe", false, "classify one example with the model, and look for the actions of agents on the MCP servers")
	cmdline.AddJSONFlag(cmd, &asJSON)
	return cmd
}

func runDoctor(ctx context.Context, out io.Writer, flags *routerflags.Config, probe, asJSON bool) error {
	findings := []doctor.Finding{} // an empty list is [] in JSON
	printer := newFindingPrinter(out)
	report := func(f doctor.Finding) {
		findings = append(findings, f)
		printer.printFinding(&f)
	}
	if asJSON {
		report = func(f doctor.Finding) { findings = append(findings, f) }
	} else {
		printer.printWaiting()
	}
	runChecks(ctx, flags, probe, report)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		printer.Clear()
		return err
	}
	if asJSON {
		if err := cmdline.PrintJSON(out, findings); err != nil {
			return err
		}
	} else if err := printer.printSummary(findings); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Level == doctor.LevelFail }) {
		return cmdline.SilentError{}
	}
	return nil
}

// runChecks reports mistakes in the configuration, or else checks everything it names.
func runChecks(ctx context.Context, flags *routerflags.Config, probe bool, report func(doctor.Finding)) {
	cfg, err := flags.LoadConfig()
	if err != nil {
		for _, line := range cmdline.SplitErrors(err) {
			report(doctor.Finding{
				Check: "configuration", Level: doctor.LevelFail, Detail: line,
				Fix: "correct the file, CAPROUTER_* variable or flag that it names",
			})
		}
		return
	}
	opts := app.Options{LogOutput: io.Discard, Version: buildVersion()}
	if opts.Supervisor, err = mcpSupervisor(); err != nil {
		report(doctor.Finding{Check: "mcp", Level: doctor.LevelFail, Detail: err.Error()})
		return
	}
	doctor.Run(ctx, cfg, opts, func(f doctor.Finding) {
		if f.Check == "configuration" {
			f.Detail = configSource(flags) + ": " + f.Detail
		}
		report(f)
	})
	if probe && !errors.Is(ctx.Err(), context.Canceled) {
		if f := doctor.ProbeActions(ctx, cfg, opts); f.Level != doctor.LevelSkip {
			report(f)
		}
		report(doctor.ProbeModel(ctx, cfg, opts))
	}
}

func configSource(flags *routerflags.Config) string {
	path := flags.ConfigPath()
	if path != "" {
		return path
	}
	if _, err := os.Stat(config.DefaultFile); err == nil {
		return config.DefaultFile
	}
	return "the defaults, because there is no " + config.DefaultFile + " here"
}

// findingPrinter prints findings as they arrive. On a terminal the last line shows
// that checks are running.
type findingPrinter struct {
	*terminal.ProgressLine
	opts terminal.Options
}

func newFindingPrinter(out io.Writer) findingPrinter {
	return findingPrinter{terminal.NewProgressLine(out), terminal.DetectOptions(out)}
}

func (p findingPrinter) printWaiting() { p.PrintLine("… checking") }

func (p findingPrinter) printFinding(f *doctor.Finding) {
	p.Clear()
	fmt.Fprint(p.Out, formatFinding(f, p.opts))
	p.printWaiting()
}

func (p findingPrinter) printSummary(findings []doctor.Finding) error {
	p.Clear()
	_, err := fmt.Fprintf(p.Out, "\n%s\n", summarizeFindings(findings))
	return err
}

// checkWidth is the width of the column of checks.
const checkWidth = 14

// formatFinding returns a finding and, if there is one, its fix:
//
//	✓ registry        capabilities.yaml: 3 agents, 6 intents, 7 domains
//	✗ llm key         GEMINI_API_KEY is not set
//	                  → export GEMINI_API_KEY=…
func formatFinding(f *doctor.Finding, opts terminal.Options) string {
	p := terminal.NewPrinter(opts)
	mark, style := findingMark(f.Level)
	p.Margin = len(terminal.Indent)
	column := len(terminal.Indent) + 2 + checkWidth + len(terminal.ColumnGap)
	check := terminal.Truncate(terminal.OneLine(f.Check), checkWidth)
	check += strings.Repeat(" ", checkWidth-terminal.TextWidth(check))
	detail := p.WrapText(terminal.Plain, f.Detail, column)
	detail = strings.ReplaceAll(detail, "\n", "\n"+strings.Repeat(" ", column-p.Margin))
	p.WriteBlock("", p.Margin, p.StyleText(style, mark)+" "+check+terminal.ColumnGap+detail)
	if f.Fix != "" {
		p.WriteBlock("", column, p.WrapText(style, "→ "+f.Fix, column))
	}
	return p.String()
}

func findingMark(level string) (string, terminal.Style) {
	switch level {
	case doctor.LevelOK:
		return "✓", terminal.Green
	case doctor.LevelWarn:
		return "!", terminal.Yellow
	case doctor.LevelSkip:
		return "-", terminal.Dim
	}
	return "✗", terminal.Red
}

func summarizeFindings(findings []doctor.Finding) string {
	n := map[string]int{}
	for i := range findings {
		n[findings[i].Level]++
	}
	switch failed, warned := n[doctor.LevelFail], n[doctor.LevelWarn]; {
	case failed > 0 && warned > 0:
		return fmt.Sprintf("%s failed, %s", plaintext.CountNoun(failed, "check"), plaintext.CountNoun(warned, "warning"))
	case failed > 0:
		return plaintext.CountNoun(failed, "check") + " failed"
	case warned > 0:
		return "ready to serve, with " + plaintext.CountNoun(warned, "warning")
	}
	return "ready to serve"
}
