// Package goldentest runs golden cases in a `go test` of your own: a sub-test a
// case, which fails with what package golden says is different. It is a thin
// skin over golden.Load and golden.Run and owns nothing else.
//
//	func TestRouting(t *testing.T) {
//		goldentest.Run(t, goldentest.Options{
//			Registry: "capabilities.yaml",
//			Cases:    []string{"testdata/routing"},
//		})
//	}
//
// One case, as with any sub-test:
//
//	go test -run 'TestRouting/review-python$' .
package goldentest

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
)

// Options says what is run. Registry and Cases are required.
type Options struct {
	Registry string   // the registry file
	Cases    []string // files and directories of cases
	Filter   golden.Filter
	// Cassette is a file made by `caprouter golden record`: the model of the run.
	// Without one the registry's words read the requests.
	Cassette string
}

// Run runs the cases. Nothing is sent, and no network is used.
func Run(t *testing.T, opts Options) {
	t.Helper()
	cfg, err := config(opts)
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
		t.Run(r.ID, func(t *testing.T) { check(t, r) })
	}
}

func config(opts Options) (golden.Config, error) {
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
	cases, err := golden.LoadCases(opts.Cases, golden.NewDeclaredNames(cfg.Registry))
	cfg.Cases = golden.FilterCases(cases, opts.Filter)
	return cfg, err
}

// failer is the part of a *testing.T that a case needs.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

func check(t failer, r *golden.CaseResult) {
	t.Helper()
	if r.Passed {
		return
	}
	t.Errorf("%s:%d: %q\n\t%s\n\tread as %s %v, confidence %.2f (%s)", r.File, r.Line, r.Input,
		strings.Join(r.Differences, "\n\t"), r.Actual.Intent, r.Actual.Domains, r.Actual.Confidence, r.Actual.Source)
}
