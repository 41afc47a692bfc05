// Package goldentest runs golden cases in a `go test`: one subtest per case,
// which fails with the differences that package golden reports, or is skipped
// if the case is a known failure.
//
//	func TestRouting(t *testing.T) {
//		goldentest.Run(t, goldentest.Options{
//			Registry: "capabilities.yaml",
//			Cases:    []string{"testdata/routing"},
//		})
//	}
//
// Run a single case like any subtest:
//
//	go test -run 'TestRouting/review-python$' .
package goldentest

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
)

// Options configures a run. Registry and Cases are required.
type Options struct {
	Registry string   // registry file
	Cases    []string // case files and directories
	Filter   golden.Filter
	// Cassette is a file made by `caprouter golden record`, which replaces the
	// model. Without it the lexical classifier is used.
	Cassette string
}

// Run runs the cases. It uses no network and calls no agent.
func Run(t *testing.T, opts Options) {
	t.Helper()
	cfg, err := loadConfig(opts, func(file, why string) { t.Logf("skipped %s: %s", file, why) })
	if err != nil {
		t.Fatalf("golden cases:\n%v", err)
	}
	if len(cfg.Cases) == 0 {
		t.Fatal("golden cases: none passes the filter")
	}
	report, err := golden.Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("golden cases: %v", err)
	}
	for i := range report.Cases {
		r := &report.Cases[i]
		t.Run(r.ID, func(t *testing.T) { checkResult(t, r) })
	}
}

func loadConfig(opts Options, skipped func(file, why string)) (golden.Config, error) {
	var cfg golden.Config
	var err error
	if cfg.Registry, err = capabilities.Load(opts.Registry); err != nil {
		return cfg, err
	}
	if opts.Cassette != "" {
		if cfg.Cassette, err = golden.ReadCassette(opts.Cassette); err != nil {
			return cfg, err
		}
	}
	cases, err := golden.CaseLoader{Names: golden.NewDeclaredNames(cfg.Registry), Skipped: skipped}.Load(opts.Cases)
	cfg.Cases = golden.FilterCases(cases, opts.Filter)
	return cfg, err
}

// errorReporter is the part of *testing.T that checkResult uses.
type errorReporter interface {
	Helper()
	Errorf(format string, args ...any)
	Skipf(format string, args ...any)
}

func checkResult(t errorReporter, r *golden.CaseResult) {
	t.Helper()
	switch {
	case r.Failed():
		t.Errorf("%s:%d: %q\n\t%s\n\tread as %s %v, confidence %.2f (%s)", r.File, r.Line, r.Input,
			strings.Join(r.Differences, "\n\t"), r.Actual.Intent, r.Actual.Domains, r.Actual.Confidence, r.Actual.Source)
	case !r.Passed:
		t.Skipf("known failure: %s", r.KnownFailure)
	}
}
