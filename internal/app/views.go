package app

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/lint"
	"github.com/caprouter/caprouter/internal/modelfile"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/router"
)

// viewBuilder keeps the View of the router up to date with the registry.
//
// A change of the fleet alone is in use at once, and so are agents that register
// themselves with labels and examples that the catalogue has already. After a change of
// the catalogue, the lexical model is trained in the background while the previous View
// serves, without agents that the change has disabled: one training at a time, which
// starts when the catalogue has not changed for trainingDelay. The first one starts at
// once.
type viewBuilder struct {
	train   func(context.Context, *capabilities.Catalogue) (*lexical.Model, error)
	live    router.LiveSource
	install func(*router.View)

	latest  atomic.Pointer[capabilities.Snapshot]
	changed chan struct{} // holds a token if latest is new to run
	ready   chan struct{} // closed after the first View is installed

	// The fields below are owned by the goroutine of run.
	view       *router.View // installed; nil before the first training
	restricted bool         // view has agents disabled that its version has not
	training   bool
	firstAsked time.Time // of the changes that are not trained yet; zero if there are none
}

const (
	trainingDelay = 250 * time.Millisecond
	// maxTrainingDelay bounds how long a catalogue that changes all the time can
	// postpone a training.
	maxTrainingDelay = 10 * trainingDelay
)

func newViewBuilder(train func(context.Context, *capabilities.Catalogue) (*lexical.Model, error), live router.LiveSource, install func(*router.View)) *viewBuilder {
	return &viewBuilder{train: train, live: live, install: install, changed: make(chan struct{}, 1), ready: make(chan struct{})}
}

// Update sets the version of the registry to build a View of. It does not wait for
// the View.
func (b *viewBuilder) Update(s *capabilities.Snapshot) {
	b.latest.Store(s)
	select {
	case b.changed <- struct{}{}:
	default: // run has not seen the previous change yet, and will read this one
	}
}

// trainedModel is the result of one training.
type trainedModel struct {
	snapshot *capabilities.Snapshot
	model    *lexical.Model
}

// startBuilding builds Views in goroutines of the group until the group stops.
func (b *viewBuilder) startBuilding(g *run.Group) {
	g.Go("build views", func(ctx context.Context) error {
		b.buildViews(ctx, g)
		return nil
	})
}

func (b *viewBuilder) buildViews(ctx context.Context, g *run.Group) {
	trained := make(chan trainedModel, 1)
	delay := time.NewTimer(0)
	delay.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
			b.scheduleTraining(delay)
		case <-delay.C:
			b.training, b.firstAsked = true, time.Time{}
			s := b.latest.Load()
			g.Go("train the lexical model", func(ctx context.Context) error {
				model, err := b.train(ctx, s.Catalogue)
				if err != nil {
					return nil //nolint:nilerr // the group stops
				}
				trained <- trainedModel{snapshot: s, model: model}
				return nil
			})
		case t := <-trained:
			b.training = false
			b.finishTraining(t)
			b.scheduleTraining(delay) // the catalogue may have changed meanwhile
		}
	}
}

// scheduleTraining installs the latest version at once if only its fleet differs,
// else it sets the timer of the next training. Catalogue and fleet of a version are
// installed together, because the endpoint of a new version must not be used with
// the access rules of an older one. Agents that the latest version disables get no
// tasks from now on, because an operator does not wait for a training.
func (b *viewBuilder) scheduleTraining(delay *time.Timer) {
	s := b.latest.Load()
	switch {
	case b.view != nil && s.Catalogue.Version == b.view.Catalogue.Version:
		b.firstAsked = time.Time{}
		delay.Stop()
		if b.restricted || s.Fleet.Revision != b.view.Fleet.Revision {
			b.installView(b.view.WithMembers(s, b.live), false)
		}
	case b.view == nil && b.training: // finishTraining follows
	case b.view == nil:
		delay.Reset(0)
	default:
		if f := b.view.Fleet.WithDisabled(s.Fleet); f != nil {
			b.installView(b.view.WithMembers(&capabilities.Snapshot{Catalogue: b.view.Catalogue, Fleet: f}, b.live), true)
		}
		if b.training { // finishTraining follows
			return
		}
		now := time.Now()
		if b.firstAsked.IsZero() {
			b.firstAsked = now
		}
		delay.Reset(max(0, min(trainingDelay, b.firstAsked.Add(maxTrainingDelay).Sub(now))))
	}
}

// finishTraining installs the View of a trained model. If the latest version has the
// same catalogue, its fleet is used. A model of a catalogue that has been reverted
// meanwhile is dropped.
func (b *viewBuilder) finishTraining(t trainedModel) {
	latest := b.latest.Load()
	if b.view != nil && latest.Catalogue.Version == b.view.Catalogue.Version {
		return
	}
	s, restricted := t.snapshot, false
	if latest.Catalogue.Version == s.Catalogue.Version {
		s = latest
	} else if f := s.Fleet.WithDisabled(latest.Fleet); f != nil {
		s, restricted = &capabilities.Snapshot{Catalogue: s.Catalogue, Fleet: f}, true
	}
	first := b.view == nil
	b.installView(router.NewTrainedView(s, t.model, b.live), restricted)
	if first {
		close(b.ready)
	}
}

func (b *viewBuilder) installView(v *router.View, restricted bool) {
	b.view, b.restricted = v, restricted
	b.install(v)
}

// installView makes v the View of the router, and logs warnings about the part of the registry
// that has changed.
func (c *core) installView(v *router.View) {
	previous := c.router.View()
	c.router.SetView(v)
	if previous == nil || previous.Fleet.Revision != v.Fleet.Revision {
		for _, w := range v.Fleet.Warnings {
			c.log.Warn("registry", "warning", w)
		}
	}
	if !c.cfg.Orchestrator.Planner.IsModel() {
		warnOfPlanner(c.log, previous, v)
	}
	if previous == nil || previous.Catalogue.Version != v.Catalogue.Version {
		c.warnOfCascade(v)
	}
	if previous != nil && previous.Catalogue.Version != v.Catalogue.Version {
		c.logLearning(v)
	}
}

// warnOfPlanner logs which agents turn their tasks into goals, which no model plans, if these
// agents have changed.
func warnOfPlanner(logger *slog.Logger, previous, v *router.View) {
	if previous != nil && previous.Fleet.Revision == v.Fleet.Revision {
		return
	}
	var before []string
	if previous != nil {
		before = previous.Fleet.WithProtocol(contract.ProtocolOrchestrator)
	}
	if ids := v.Fleet.WithProtocol(contract.ProtocolOrchestrator); len(ids) > 0 && !slices.Equal(ids, before) {
		logger.Warn("every task of agents with the protocol orchestrator ends with planner_not_configured: set orchestrator.planner.kind to gemini, genai or openai", "agents", ids)
	}
}

// warnOfCascade logs that the cascade has no effect because the registry has too few
// examples to calibrate the lexical classifier.
func (c *core) warnOfCascade(v *router.View) {
	mode, _ := c.classifier.Mode()
	auto := c.cfg.Classifier.Cascade.Accept == config.AcceptAuto
	if mode == classifier.ModeCascade && auto && math.IsInf(v.Lexical.AcceptThreshold(), 1) {
		c.log.Warn("too few examples to calibrate the lexical classifier: the cascade asks the model for every request",
			"key", "classifier.cascade.accept", "registry_version", v.Catalogue.Version)
	}
}

// logLearning logs what the lexical classifier learned from the registry.
func (c *core) logLearning(v *router.View) {
	if !c.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	l := lint.Describe(v.Catalogue, v.Lexical)
	if l.Examples == 0 {
		return
	}
	args := []any{"examples", l.FormatExamples()}
	for _, field := range [][2]string{
		{"expected_accuracy", l.FormatAccuracy()},
		{"weakest", strings.Join(l.Weakest(), ", ")},
		{"confused", strings.Join(l.MostConfused(), ", ")},
		{"registry_version", v.Catalogue.Version},
	} {
		if field[1] != "" {
			args = append(args, field[0], field[1])
		}
	}
	c.log.Info("examples learned", args...)
}

// storedModels returns a function that trains models until its context ends, or loads
// them from the data directory.
func storedModels(dataDir string, logger *slog.Logger) func(context.Context, *capabilities.Catalogue) (*lexical.Model, error) {
	dir := modelfile.New(dataDir, logger)
	return func(ctx context.Context, c *capabilities.Catalogue) (*lexical.Model, error) {
		corpus := classifier.BuildCorpus(c)
		return lexical.TrainStored(lexical.WithProgress(ctx, logTraining(logger, c, time.Now)), corpus, dir)
	}
}

// quietTraining is the time from which a training is logged: those of most registries are
// shorter.
const quietTraining = time.Second

// logTraining returns a function that logs that a training takes long, once.
func logTraining(logger *slog.Logger, c *capabilities.Catalogue, now func() time.Time) func(done, total int) {
	began, logged := now(), false
	return func(done, total int) {
		if logged || done == total || now().Sub(began) < quietTraining {
			return
		}
		logged = true
		logger.Info("training the lexical classifier", "percent", 100*done/total, "agents", len(c.Agents), "registry_version", c.Version)
	}
}
