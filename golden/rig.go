package golden

import (
	"context"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/prompts"
	"github.com/caprouter/caprouter/router"
)

// patience is what a model has that answers at once: a busy machine must not
// make a timeout of it. longest is the most a request may take (contract).
const (
	patience = time.Minute
	longest  = contract.MaxTimeoutMS * time.Millisecond
)

// rig routes cases over one registry as a server would, as dry runs.
type rig struct {
	view       *router.View
	redactor   *redact.Redactor
	cfg        classifier.Config
	classifier *classifier.Classifier
	router     *router.Router
}

func newRig(registry *capabilities.Snapshot, cfg classifier.Config, redactor *redact.Redactor) (*rig, error) {
	if redactor == nil {
		var err error
		if redactor, err = redact.New(redact.Config{}); err != nil {
			return nil, err
		}
	}
	// Nothing of the clock and of what was asked before may show in a report.
	cfg.Now = func() time.Time { return time.Time{} }
	cfg.Cache = classifier.CacheConfig{}
	g := &rig{view: router.NewView(registry, nobody{}), redactor: redactor, cfg: cfg}
	var err error
	if g.classifier, err = classifier.New(cfg); err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	mode, _ := g.classifier.Mode()
	g.router, err = g.newRouter(g.view, g.classifier, mode != classifier.ModeLexical)
	return g, err
}

func (g *rig) close() { g.classifier.Close() }

// newRouter makes a router over the view; it shares everything but the
// classifier with the others of the rig.
func (g *rig) newRouter(v *router.View, c router.Classifier, hasModel bool) (*router.Router, error) {
	r, err := router.New(router.Config{
		Timeout:         longest,
		Redactor:        g.redactor,
		AnswerByDefault: hasModel,
		Now:             g.cfg.Now,
		NewID:           func() string { return "" },
	}, c, nobody{})
	if err != nil {
		return nil, err
	}
	r.SetView(v)
	return r, nil
}

// setup says how the rig understands requests.
func (g *rig) setup() Classifier {
	mode, _ := g.classifier.Mode()
	c := Classifier{Mode: mode}
	if mode != classifier.ModeLexical {
		c.Provider, c.Model, c.PromptVersion = g.cfg.Model.Provider(), g.cfg.Model.Model(), prompts.RouterVersion
	}
	return c
}

// route takes the case along the router's one path. A case with a script has a
// model of its own, and all that comes with one.
func (g *rig) route(ctx context.Context, c *Case) (*contract.Response, error) {
	if c.LLM == nil {
		return g.router.Handle(ctx, c.request(), caller())
	}
	cfg := g.cfg
	cfg.Mode, cfg.Model, cfg.Timeout = classifier.ModeLLM, &script{replies: c.LLM}, patience
	scripted, err := classifier.New(cfg)
	if err != nil {
		return nil, err
	}
	defer scripted.Close()
	r, err := g.newRouter(g.view, scripted, true)
	if err != nil {
		return nil, err
	}
	return r.Handle(ctx, c.request(), caller())
}

// caller may use every agent.
func caller() *contract.Caller {
	return &contract.Caller{Subject: "golden", AllScopes: true, AllAgents: true}
}

// nobody is the dispatcher of a router that only decides. Its agents are up.
type nobody struct{}

// SetAgents says nothing about any agent, which is what an active one's state says.
func (nobody) SetAgents([]*contract.RegistryEntry) matcher.Live { return nil }

// CancelTask has nobody to tell.
func (nobody) CancelTask(dispatch.Call) {}

// Send refuses: a dry run that sends is a mistake of the router's.
func (nobody) Send(context.Context, dispatch.Call) dispatch.Outcome {
	return dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "golden cases are dry runs: no agent is called"}}
}
