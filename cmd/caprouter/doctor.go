package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
)

func newDoctorCommand() *cobra.Command {
	var flags configFlags
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything serve needs, and say what to mend",
		Long: "Check what serve would run with the same flags: configuration, registry, data directory, address,\n" +
			"and the model: whether its key is there, accepted, and good for the model that is named. A line for each\n" +
			"check; below what is not well stands what to do. The key itself is never shown.\n\n" +
			"Exit code 1 when a check fails, 0 when there are only warnings.",
		Example: `  caprouter doctor
  caprouter doctor --config /etc/caprouter/caprouter.yaml --timeout 3s
  caprouter doctor --json`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return usagef(cmd, "--timeout %s is no time to wait", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return doctor(ctx, cmd.OutOrStdout(), &flags, asJSON)
		},
	}
	flags.register(cmd, true)
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "most `TIME` the checks over the network may take")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func doctor(ctx context.Context, out io.Writer, flags *configFlags, asJSON bool) error {
	findings := []app.Finding{} // an empty list is [] in JSON
	progress := newProgress(out, asJSON)
	diagnose(ctx, flags, func(f app.Finding) {
		findings = append(findings, f)
		progress.print(&f)
	})
	if err := progress.end(findings, asJSON); err != nil {
		return err
	}
	for i := range findings {
		if findings[i].Level == app.LevelFail {
			return silentError{}
		}
	}
	return nil
}

// diagnose reports on the configuration, and if that can be used on all it names.
func diagnose(ctx context.Context, flags *configFlags, report func(app.Finding)) {
	cfg, err := flags.load()
	if err != nil {
		for _, line := range errorLines(err) {
			report(app.Finding{
				Check: "configuration", Level: app.LevelFail, Detail: line,
				Fix: "mend what it names: the file, a CAPROUTER_* variable or a flag",
			})
		}
		return
	}
	app.Diagnose(ctx, cfg, app.Options{LogOutput: io.Discard, Version: buildVersion()}, func(f app.Finding) {
		if f.Check == "configuration" {
			f.Detail = configSource(flags) + ": " + f.Detail // which file it was, only the flags know
		}
		report(f)
	})
}

// configSource says what the configuration was read from.
func configSource(flags *configFlags) string {
	path := flags.path()
	if path != "" {
		return path
	}
	if _, err := os.Stat(app.DefaultConfigFile); err == nil {
		return app.DefaultConfigFile
	}
	return "the defaults, as there is no " + app.DefaultConfigFile + " here"
}

// progress prints findings as they come. On a terminal its last line says that
// there is more to come, until there is.
type progress struct {
	out      io.Writer
	opts     outputOptions
	quiet    bool // JSON is printed at the end
	terminal bool
}

func newProgress(out io.Writer, quiet bool) *progress {
	_, ok := asTerminal(out)
	p := &progress{out: out, opts: detectOutput(out), quiet: quiet, terminal: ok && !quiet}
	p.wait()
	return p
}

const (
	waiting   = indent + "… checking"
	clearLine = "\r\x1b[K"
)

func (p *progress) wait() {
	if p.terminal {
		fmt.Fprint(p.out, waiting)
	}
}

func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, clearLine)
	}
}

func (p *progress) print(f *app.Finding) {
	if p.quiet {
		return
	}
	p.clear()
	fmt.Fprint(p.out, formatFinding(f, p.opts))
	p.wait()
}

// end prints what is said once all findings are there.
func (p *progress) end(findings []app.Finding, asJSON bool) error {
	if asJSON {
		return printJSON(p.out, findings)
	}
	p.clear()
	_, err := fmt.Fprintf(p.out, "\n%s\n", summary(findings))
	return err
}

// checkWidth is the width of the column of checks.
const checkWidth = 14

// formatFinding returns a finding and, if there is one, its fix:
//
//	✓ registry        capabilities.yaml: 3 agents, 6 intents, 7 domains
//	✗ llm key         GEMINI_API_KEY is not set
//	                  → export GEMINI_API_KEY=…
func formatFinding(f *app.Finding, opts outputOptions) string {
	p := newPrinter(opts)
	mark, style := findingMark(f.Level)
	p.margin = len(indent)
	column := len(indent) + 2 + checkWidth + len(columnGap)
	check := p.newStyle(plain).Width(checkWidth).Render(truncate(oneLine(f.Check), checkWidth))
	detail := p.wrapped(plain, f.Detail, column)
	p.writeBlock("", p.margin, lipgloss.JoinHorizontal(lipgloss.Top, p.styled(style, mark)+" ", check, columnGap, detail))
	if f.Fix != "" {
		p.writeBlock("", column, p.wrapped(style, "→ "+f.Fix, column))
	}
	return p.String()
}

func findingMark(level string) (string, textStyle) {
	switch level {
	case app.LevelOK:
		return "✓", green
	case app.LevelWarn:
		return "!", yellow
	case app.LevelSkip:
		return "-", dim
	}
	return "✗", red
}

// summary counts what is not well.
func summary(findings []app.Finding) string {
	n := map[string]int{}
	for i := range findings {
		n[findings[i].Level]++
	}
	switch failed, warned := n[app.LevelFail], n[app.LevelWarn]; {
	case failed > 0 && warned > 0:
		return fmt.Sprintf("%s failed, %s", count(failed, "check"), count(warned, "warning"))
	case failed > 0:
		return count(failed, "check") + " failed"
	case warned > 0:
		return "ready to serve, with " + count(warned, "warning")
	}
	return "ready to serve"
}
