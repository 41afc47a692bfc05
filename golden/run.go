package golden

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/prompts"
	"github.com/caprouter/caprouter/router"
)

// Config is the input of a run. Registry is required. The zero values of the
// others mean no cases, no model and masking of all kinds.
type Config struct {
	Registry *capabilities.Snapshot
	Cases    []Case
	// Classifier is the server's configuration. Its clock and cache are
	// replaced, so that reports are deterministic.
	Classifier classifier.Config
	// Cassette replaces the model, if it is not nil.
	Cassette *Cassette
	Redactor *redact.Redactor

	Workers  int                   // cases at a time; 0 = GOMAXPROCS
	Progress func(done, total int) // called after each case, one call at a time; may be nil
}

// newRouting validates the configuration and builds the router.
func (cfg *Config) newRouting(ctx context.Context) (*routingSetup, error) {
	if cfg.Registry == nil {
		return nil, errors.New("golden: a registry is required")
	}
	c := cfg.Classifier
	if cfg.Cassette != nil {
		if c.Model != nil {
			return nil, errors.New("golden: either a cassette or a model, not both")
		}
		c.Model, c.Timeout = replayModel{cfg.Cassette}, modelTimeout
	}
	return newRoutingSetup(ctx, cfg.Registry, c, cfg.Redactor)
}

// Run routes every case and returns a report in the order of the cases. If ctx
// ends, the report contains the cases finished by then and is marked as
// interrupted; there is no error, unless it ends while the model is trained.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	g, err := cfg.newRouting(ctx)
	if err != nil {
		return nil, err
	}
	defer g.closeClassifier()
	results := make([]*CaseResult, len(cfg.Cases))
	cfg.forEachCase(ctx, len(cfg.Cases), func(ctx context.Context, i int) {
		c := &cfg.Cases[i]
		resp, err := g.routeCase(ctx, c)
		if ctx.Err() == nil { // otherwise the result may be a consequence of the cancellation
			r := newCaseResult(c, resp, err)
			if c.LLM != nil || !g.hasModel() {
				r.applyMark(c.KnownFailure)
			}
			results[i] = &r
		}
	})
	return addResults(&Report{
		Version: reportVersion, Registry: cfg.Registry.Catalogue.Version, Classifier: g.classifierInfo(), Interrupted: ctx.Err() != nil,
	}, cfg.Cases, results), nil
}

// forEachCase calls do for 0 … n-1 until ctx ends, and reports progress.
func (cfg *Config) forEachCase(ctx context.Context, n int, do func(ctx context.Context, i int)) {
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

// errNotRecorded is the difference of a case whose model call is not in the
// cassette.
const errNotRecorded = "the cassette has no reply to this model request: record it again (caprouter golden record)"

// newCaseResult compares the response with the expectation.
func newCaseResult(c *Case, resp *contract.Response, err error) CaseResult {
	r := CaseResult{
		ID: c.ID, File: c.File, Line: c.Line, Split: c.Split, Tags: c.Tags, Input: c.Input, Expect: c.Expect,
		Actual: Actual{Agents: []string{}, Domains: []string{}},
	}
	if err != nil {
		r.Differences = []string{"the request was refused: " + err.Error()}
		return r
	}
	r.Actual = actualOf(resp)
	clf := &resp.Decision.Classification
	switch {
	case isUnrecorded(clf):
		r.Differences = []string{errNotRecorded}
	case c.LLM == nil && isUnanswered(clf) && c.Expect.Reason != clf.Reason:
		r.Differences = append([]string{describeUnanswered(clf)}, diffExpected(c, &r.Actual)...)
	default:
		r.Differences = diffExpected(c, &r.Actual)
	}
	r.Passed = len(r.Differences) == 0
	if !r.Passed {
		r.Decision = resp.Decision
		r.Decision.TimingsMS = nil // measured with a fixed clock
		r.Because = explainDecision(resp.Decision, &c.Expect)
	}
	return r
}

// isUnanswered reports whether the model was asked, but the lexical classifier
// had to answer.
func isUnanswered(clf *contract.Classification) bool {
	return clf.ModelUse != nil && clf.Source == contract.SourceLexical
}

// describeUnanswered describes why the model did not answer.
func describeUnanswered(clf *contract.Classification) string {
	why := clf.Reason
	if n := len(clf.Calls); n > 0 && clf.Calls[n-1].Detail != "" {
		why += ": " + clf.Calls[n-1].Detail
	}
	return fmt.Sprintf("the model gave no usable reply (%s), and the lexical classifier answered", why)
}

// applyMark marks the result as a known failure, if there is a reason.
func (r *CaseResult) applyMark(reason string) {
	r.KnownFailure = reason
	if r.PassedDespiteMark() {
		r.Differences = []string{errMarked}
	}
}

// errMarked is the difference of a case that passes although it is marked.
const errMarked = "it passes, and is marked as a known failure: remove known_failure from the case"

// modelTimeout is for models that reply at once: a busy machine must not cause
// a timeout. requestTimeout is the maximum of the contract.
const (
	modelTimeout   = time.Minute
	requestTimeout = contract.MaxTimeoutMS * time.Millisecond
)

// routingSetup routes cases over one registry as a server would, as dry runs.
type routingSetup struct {
	view             *router.View
	redactor         *redact.Redactor
	classifierConfig classifier.Config
	classifier       *classifier.Classifier
	router           *router.Router
}

func newRoutingSetup(ctx context.Context, registry *capabilities.Snapshot, cfg classifier.Config, redactor *redact.Redactor) (*routingSetup, error) {
	if redactor == nil {
		var err error
		if redactor, err = redact.New(redact.Config{}); err != nil {
			return nil, err
		}
	}
	// Reports must not depend on the clock or on earlier requests.
	cfg.Now = func() time.Time { return time.Time{} }
	cfg.Cache = classifier.CacheConfig{}
	cfg.MaskText = redactor.RedactText
	model, err := lexical.TrainContext(ctx, classifier.BuildCorpus(registry.Catalogue))
	if err != nil {
		return nil, err
	}
	g := &routingSetup{view: router.NewTrainedView(registry, model, dispatch.None{}), redactor: redactor, classifierConfig: cfg}
	if g.classifier, err = classifier.New(cfg); err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	g.router, err = g.newRouter(g.view, g.classifier, g.hasModel())
	return g, err
}

func (g *routingSetup) closeClassifier() { g.classifier.Close() }

// hasModel reports whether a model, live or recorded, classifies.
func (g *routingSetup) hasModel() bool {
	mode, _ := g.classifier.Mode()
	return mode != classifier.ModeLexical
}

// newRouter builds a router over the view. Routers of a setup differ only in
// view and classifier.
func (g *routingSetup) newRouter(v *router.View, c router.Classifier, hasModel bool) (*router.Router, error) {
	r, err := router.New(router.Config{
		Timeout:         requestTimeout,
		Redactor:        g.redactor,
		AnswerByDefault: hasModel,
		Now:             g.classifierConfig.Now,
		NewID:           func() string { return "" },
	}, c, dispatch.None{})
	if err != nil {
		return nil, err
	}
	r.SetView(v)
	return r, nil
}

// classifierInfo describes the classifier for the report.
func (g *routingSetup) classifierInfo() Classifier {
	mode, _ := g.classifier.Mode()
	c := Classifier{Mode: mode}
	if g.hasModel() {
		c.Provider, c.Model, c.PromptVersion = g.classifierConfig.Model.Provider(), g.classifierConfig.Model.Model(), prompts.RouterVersion
	}
	return c
}

// routeCase routes a case with router.Handle. A case with scripted replies gets
// its own model and classifier.
func (g *routingSetup) routeCase(ctx context.Context, c *Case) (*contract.Response, error) {
	if c.LLM == nil {
		return g.router.Handle(ctx, c.dryRunRequest(), c.caller())
	}
	cfg := g.classifierConfig
	cfg.Mode, cfg.Model, cfg.Timeout = classifier.ModeLLM, &scriptedModel{replies: c.LLM}, modelTimeout
	scripted, err := classifier.New(cfg)
	if err != nil {
		return nil, err
	}
	defer scripted.Close()
	r, err := g.newRouter(g.view, scripted, true)
	if err != nil {
		return nil, err
	}
	return r.Handle(ctx, c.dryRunRequest(), c.caller())
}

// scriptedModel replies with the scripted replies of a case.
type scriptedModel struct {
	replies ScriptedReplies // at least one; the last one repeats
	calls   atomic.Int64
}

// Generate returns the next reply, validated like the text of a provider: an
// empty one is an error.
func (s *scriptedModel) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	n := min(int(s.calls.Add(1)), len(s.replies))
	return llm.NewReply(s.replies[n-1], llm.FinishComplete, "", contract.Tokens{})
}

// Provider returns the name shown in decisions.
func (*scriptedModel) Provider() string { return "script" }

// Model returns the name shown in decisions.
func (*scriptedModel) Model() string { return "script" }
