package golden

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/run"
)

// Config is what is run, and over what. Registry is required; the zero values
// of the others work: no cases, no model, all kinds of text masked.
type Config struct {
	Registry *capabilities.Snapshot
	Cases    []Case
	// Classifier is as in the server, but for the clock and the cache: a run has
	// none.
	Classifier classifier.Config
	// Cassette, where there is one, is the model.
	Cassette *Cassette
	Redactor *redact.Redactor

	Workers  int                   // cases at a time; 0 = GOMAXPROCS
	Progress func(done, total int) // told of every case, one call at a time; nil = nobody
}

// rig checks the configuration and sets up what routes.
func (cfg *Config) rig() (*rig, error) {
	if cfg.Registry == nil {
		return nil, errors.New("golden: a registry is required")
	}
	c := cfg.Classifier
	if cfg.Cassette != nil {
		if c.Model != nil {
			return nil, errors.New("golden: either a cassette or a model, not both")
		}
		c.Model, c.Timeout = replay{cfg.Cassette}, patience
	}
	return newRig(cfg.Registry, c, cfg.Redactor)
}

// Run routes every case and reports what became of it, in the order of the
// cases. When ctx ends, what was finished by then is reported: the report says
// so itself, and there is no error.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	g, err := cfg.rig()
	if err != nil {
		return nil, err
	}
	defer g.close()
	results := make([]*CaseResult, len(cfg.Cases))
	cfg.each(ctx, len(cfg.Cases), func(ctx context.Context, i int) {
		c := &cfg.Cases[i]
		resp, err := g.route(ctx, c)
		if ctx.Err() == nil { // else it may be the end of ctx that shows in it
			r := resultOf(c, resp, err)
			results[i] = &r
		}
	})
	return summarise(&Report{
		Version: reportVersion, Registry: cfg.Registry.Catalogue.Version, Classifier: g.setup(), Interrupted: ctx.Err() != nil,
	}, cfg.Cases, results), nil
}

// each calls do for 0 … n-1 until ctx ends, and tells of the progress.
func (cfg *Config) each(ctx context.Context, n int, do func(ctx context.Context, i int)) {
	workers := cfg.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var (
		mu   sync.Mutex
		done int
	)
	run.ForEach(ctx, workers, n, func(ctx context.Context, i int) {
		if ctx.Err() != nil {
			return
		}
		do(ctx, i)
		if cfg.Progress == nil || ctx.Err() != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		cfg.Progress(done, n)
	})
}

// recordAgain is what is wrong with a case that a cassette does not know.
const recordAgain = "the cassette has no reply to what the model is asked: record it again (caprouter golden record)"

// resultOf judges what became of a case.
func resultOf(c *Case, resp *contract.Response, err error) CaseResult {
	r := CaseResult{
		ID: c.ID, File: c.File, Line: c.Line, Split: c.Split, Tags: c.Tags, Input: c.Input, Expect: c.Expect,
		Actual: Actual{Agents: []string{}, Domains: []string{}},
	}
	if err != nil {
		r.Differences = []string{"the request was refused: " + err.Error()}
		return r
	}
	r.Actual = gotOf(resp)
	if unrecorded(&resp.Decision.Classification) {
		r.Differences = []string{recordAgain}
	} else {
		r.Differences = differences(c, &r.Actual)
	}
	r.Passed = len(r.Differences) == 0
	if !r.Passed {
		r.Decision = resp.Decision
		r.Decision.TimingsMS = nil // of a clock that stands still
	}
	return r
}
