package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/goldenreport"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
)

// runFlags are the flags of golden run.
type runFlags struct {
	goldenFlags
	asJSON, verbose       bool
	junit, html, baseline string
	maxNewFailures        int
}

func newGoldenRunCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run CASES…",
		Short: "Run cases and report unexpected outcomes",
		Long: "Run the cases of files and directories. The lexical classifier classifies them, or with --cassette the\n" +
			"recorded replies of a model. Both are deterministic. With a model, a case fails if the lexical classifier\n" +
			"had to answer, unless the case expects the reason.\n\n" +
			"Exit code 1 if a case fails, or passes although it is marked known_failure. With --baseline, the report of\n" +
			"an earlier run, exit code 1 if a case fails that passed before, or if more new cases fail than\n" +
			"--max-new-failures. After Ctrl-C the report contains the finished cases, and the exit code is 1.",
		Example: `  caprouter golden run cases.yaml
  caprouter golden run golden/ --json > baseline.json
  caprouter golden run golden/ --baseline baseline.json --junit report.xml --html report.html
  caprouter golden run golden/ --cassette gemini.cassette.jsonl --tag pt`,
		Args: caseArgs(),
		RunE: func(cmd *cobra.Command, args []string) error { return runGoldenCases(cmd, args, &flags) },
	}
	flags.register(cmd)
	routerflags.AddRegistryFlag(cmd, &flags.RegistryFile)
	flags.registerModel(cmd)
	f := cmd.Flags()
	f.BoolVar(&flags.asJSON, "json", false, "print the report as JSON, for --baseline")
	f.BoolVar(&flags.verbose, "verbose", false, "print every case, not only failures")
	f.StringVar(&flags.junit, "junit", "", "write JUnit XML to `FILE`")
	f.StringVar(&flags.html, "html", "", "write an HTML page with plots and the decisions of failures to `FILE`")
	f.StringVar(&flags.baseline, "baseline", "", "compare with the report in `FILE`")
	cmdline.AddCountFlag(cmd, &flags.maxNewFailures, "max-new-failures", 0, 0, "with --baseline, number `N` of new cases that may fail (default 0)")
	cmdline.MustSucceed(cmd.MarkFlagFilename("junit", "xml"))
	cmdline.MustSucceed(cmd.MarkFlagFilename("html", "html"))
	cmdline.MustSucceed(cmd.MarkFlagFilename("baseline", "json"))
	return cmd
}

func runGoldenCases(cmd *cobra.Command, args []string, flags *runFlags) error {
	if flags.baseline == "" && cmd.Flags().Changed("max-new-failures") {
		return cmdline.UsageErrorf(cmd, "--max-new-failures needs --baseline")
	}
	if err := flags.checkOutputs(cmd, args); err != nil { // before the run, which may be long and expensive
		return err
	}
	baseline, err := flags.readBaseline()
	if err != nil {
		return err
	}
	g, err := flags.openCases(cmd, args, flags.classifierSource())
	if err != nil {
		return err
	}
	defer g.Close()
	if err := flags.checkBaseline(baseline, g.Config.Cases); err != nil {
		return err
	}
	r, err := withProgress(cmd, "cases", &g.Config, func(ctx context.Context) (*golden.Report, error) {
		return golden.Run(ctx, g.Config)
	})
	if err != nil {
		return err
	}
	return flags.finishRun(cmd, r, baseline)
}

// reportFile is a file to which the report is written.
type reportFile struct {
	flag, path string
	write      func(io.Writer, *golden.Report) error
}

func (f *runFlags) reportFiles() []reportFile {
	all := []reportFile{{"--junit", f.junit, golden.WriteJUnit}, {"--html", f.html, golden.WriteHTML}}
	return slices.DeleteFunc(all, func(o reportFile) bool { return o.path == "" })
}

// checkOutputs rejects report files that cannot be written, or that would overwrite an
// input or each other.
func (f *runFlags) checkOutputs(cmd *cobra.Command, cases []string) error {
	outputs := f.reportFiles()
	if len(outputs) == 0 {
		return nil
	}
	cfg, err := f.LoadConfig()
	if err != nil {
		return err
	}
	files, err := golden.ListFiles(cases)
	if err != nil {
		return localfile.ShortenError(err)
	}
	type file struct{ what, path string }
	others := []file{
		{"--baseline", f.baseline},
		{"--cassette", f.cassette},
		{"the configuration", cmp.Or(f.ConfigPath(), config.DefaultFile)},
		{"the registry", cmp.Or(cfg.Registry.File, config.DefaultRegistryFile)},
	}
	for _, path := range files {
		others = append(others, file{"the case file", path})
	}
	for i, o := range outputs {
		if i > 0 {
			others = append(others, file{outputs[i-1].flag, outputs[i-1].path})
		}
		for _, other := range others {
			if other.path != "" && localfile.SameFile(o.path, other.path) {
				return cmdline.UsageErrorf(cmd, "%s %s and %s %s are the same file: name another", o.flag, o.path, other.what, other.path)
			}
		}
		if err := localfile.CheckWritable(o.path); err != nil {
			return err
		}
	}
	return nil
}

// finishRun prints the result before it writes the files, so that a failed write does
// not lose it.
func (f *runFlags) finishRun(cmd *cobra.Command, r, baseline *golden.Report) error {
	failed := f.printResult(cmd.OutOrStdout(), r)
	verdict := f.checkResult(cmd, r, baseline)
	for _, o := range f.reportFiles() {
		failed = errors.Join(failed, localfile.WriteReport(o.path, func(w io.Writer) error { return o.write(w, r) }))
	}
	if _, silent := errors.AsType[cmdline.SilentError](verdict); silent && failed != nil {
		return failed
	}
	return errors.Join(verdict, failed)
}

func (f *runFlags) printResult(out io.Writer, r *golden.Report) error {
	if f.asJSON {
		return golden.WriteJSON(out, r)
	}
	return goldenreport.PrintReport(out, r, f.verbose)
}

// checkResult returns an error if the exit code is to be 1.
func (f *runFlags) checkResult(cmd *cobra.Command, r, baseline *golden.Report) error {
	bad := r.Summary.Failed > 0
	passedDespiteMark := slices.ContainsFunc(r.Cases, func(c golden.CaseResult) bool { return c.PassedDespiteMark() })
	if baseline != nil {
		c := f.compareBaseline(baseline, r)
		out := cmd.OutOrStdout()
		if f.asJSON {
			out = cmd.ErrOrStderr() // stdout contains the report
		}
		goldenreport.PrintComparison(out, baseline, r, &c, f.maxNewFailures)
		bad = len(c.Regressions) > 0 || len(c.NewFailures) > f.maxNewFailures || passedDespiteMark
	}
	switch {
	case r.Interrupted:
		return fmt.Errorf("interrupted: %d of %d cases were run; the report holds these", r.Summary.Total, r.Summary.Planned)
	case bad:
		return cmdline.SilentError{}
	}
	return nil
}

// readBaseline returns nil if no baseline is named.
func (f *runFlags) readBaseline() (*golden.Report, error) {
	if f.baseline == "" {
		return nil, nil
	}
	r, err := golden.ReadBaseline(f.baseline)
	return r, localfile.ShortenError(err)
}

// checkBaseline rejects a baseline without any of the cases, because it belongs to
// other cases. A few selected cases may all be new.
func (f *runFlags) checkBaseline(baseline *golden.Report, cases []golden.Case) error {
	if baseline == nil || f.selectsCases() || baseline.HasAny(cases) {
		return nil
	}
	return fmt.Errorf("%s: has none of these cases (its first is %q, theirs is %q): it is the report of other cases; write a new one with golden run --json",
		f.baseline, terminal.Truncate(terminal.OneLine(baseline.Cases[0].ID), terminal.DefaultWidth), terminal.Truncate(terminal.OneLine(cases[0].ID), terminal.DefaultWidth))
}

// compareBaseline compares the report with the baseline. Filtered cases do not count
// as removed.
func (f *runFlags) compareBaseline(baseline, r *golden.Report) golden.Comparison {
	c := golden.CompareReports(baseline, r)
	if f.selectsCases() {
		c.Gone = nil
	}
	return c
}
