package golden

import (
	"cmp"
	"context"
	"math"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/router"
)

// thresholdSearch scores thresholds on classified cases.
type thresholdSearch struct {
	cfg   *Config
	setup *routingSetup
}

// classifiedCase is a case with its classification.
type classifiedCase struct {
	c   *Case
	clf contract.Classification
	err error
}

func (f *thresholdSearch) classifyCases(ctx context.Context, cases []Case) []classifiedCase {
	read := make([]classifiedCase, len(cases))
	f.cfg.forEachCase(ctx, len(cases), func(ctx context.Context, i int) {
		read[i].c = &cases[i]
		clf, err := f.setup.router.Classify(ctx, cases[i].dryRunRequest(), cases[i].caller())
		if err != nil {
			read[i].err = err
			return
		}
		read[i].clf = *clf
	})
	return read
}

func (f *thresholdSearch) search(ctx context.Context, train, held []classifiedCase, precision float64) (*FitResult, error) {
	fit := &FitResult{Registry: f.cfg.Registry.Catalogue.Version, Classifier: f.setup.classifierInfo(), Target: precision}
	if ctx.Err() != nil {
		return nil, ctx.Err() // nothing was tried
	}
	now := currentThresholds(f.cfg.Registry.Catalogue.Routing)
	var err error
	if fit.TrainNow, err = f.scoreThresholds(ctx, now, train); err != nil {
		return nil, err
	}
	settings := thresholdGrid()
	scores := make([]*FitScore, len(settings))
	f.cfg.forEachCase(ctx, len(settings), func(ctx context.Context, i int) {
		if s, err := f.scoreThresholds(ctx, settings[i], train); err == nil && ctx.Err() == nil {
			scores[i] = &s
		}
	})
	fit.Interrupted = ctx.Err() != nil
	fit.TrainBest = fit.TrainNow
	for _, s := range scores {
		if s == nil {
			continue
		}
		fit.Settings++
		if isBetter(s, &fit.TrainBest, now, precision) {
			fit.TrainBest = *s
		}
	}
	fit.Reached = fit.TrainBest.reachesPrecision(precision)
	// The held-out cases are used only after the choice is made.
	return fit, f.scoreHeldOut(context.WithoutCancel(ctx), fit, now, held)
}

func (f *thresholdSearch) scoreHeldOut(ctx context.Context, fit *FitResult, now Thresholds, held []classifiedCase) error {
	if len(held) == 0 {
		return nil
	}
	before, err := f.scoreThresholds(ctx, now, held)
	if err != nil {
		return err
	}
	after, err := f.scoreThresholds(ctx, fit.TrainBest.Setting, held)
	if err != nil {
		return err
	}
	fit.HeldOutNow, fit.HeldOutBest = &before, &after
	for _, v := range minConfidenceGrid() {
		s := fit.TrainBest.Setting
		s.MinConfidence = &v
		point, err := f.scoreThresholds(ctx, s, held)
		if err != nil {
			return err
		}
		fit.Curve = append(fit.Curve, point)
	}
	return nil
}

// isBetter reports whether a is preferable to b: first by precision up to the
// requested one, then by passed cases, then by fewer misroutes, then by
// distance from the current thresholds.
func isBetter(a, b *FitScore, now Thresholds, precision float64) bool {
	return cmp.Or(
		cmp.Compare(a.cappedPrecision(precision), b.cappedPrecision(precision)),
		cmp.Compare(a.Passed, b.Passed),
		cmp.Compare(b.Misroutes, a.Misroutes),
		cmp.Compare(now.distanceTo(b.Setting), now.distanceTo(a.Setting)),
	) > 0
}

// cappedPrecision returns the precision, at most the requested one. Thresholds
// that dispatch nothing are worse than any others.
func (s *FitScore) cappedPrecision(precision float64) float64 {
	if s.Precision == nil {
		return -1
	}
	return min(*s.Precision, precision)
}

func (s Thresholds) distanceTo(to Thresholds) float64 {
	// Adding or removing min_confidence is the greatest change, so that it is
	// proposed only if it makes a difference.
	d := math.Abs(s.ConfidenceThreshold-to.ConfidenceThreshold) + math.Abs(s.AmbiguityThreshold-to.AmbiguityThreshold)
	switch {
	case s.MinConfidence == nil && to.MinConfidence == nil:
	case s.MinConfidence == nil || to.MinConfidence == nil:
		d++
	default:
		d += math.Abs(*s.MinConfidence - *to.MinConfidence)
	}
	return d
}

func currentThresholds(r capabilities.Routing) Thresholds {
	return Thresholds{r.MinConfidence, r.ConfidenceThreshold, r.AmbiguityThreshold}
}

// minConfidenceGrid returns the values of min_confidence to try.
func minConfidenceGrid() []float64 {
	var list []float64
	for n := 6; n <= 19; n++ {
		list = append(list, float64(n*5)/100)
	}
	return append(list, 0.98)
}

// thresholdGrid returns the thresholds to try. Match scores are sums of 0.5,
// 0.3 per domain and −0.2, so few match thresholds differ in effect.
func thresholdGrid() []Thresholds {
	var list []Thresholds
	for _, match := range []float64{0.3, 0.5, 0.65, 0.8, 1.1} {
		for _, ambiguity := range []float64{0, 0.05, 0.1, 0.15, 0.2, 0.3} {
			for _, v := range minConfidenceGrid() {
				list = append(list, Thresholds{&v, match, ambiguity})
			}
		}
	}
	return list
}

// scoreThresholds routes the cases with the thresholds.
func (f *thresholdSearch) scoreThresholds(ctx context.Context, s Thresholds, read []classifiedCase) (FitScore, error) {
	score := FitScore{Setting: s, Cases: len(read)}
	r, err := f.setup.newRouter(f.viewWith(s), storedClassifier{}, true)
	if err != nil {
		return score, err
	}
	for i := range read {
		if ctx.Err() != nil {
			return score, ctx.Err()
		}
		if read[i].err != nil || read[i].c == nil {
			continue
		}
		resp, err := r.Handle(context.WithValue(ctx, classificationKey{}, &read[i].clf), read[i].c.dryRunRequest(), read[i].c.caller())
		if err != nil {
			continue
		}
		got := actualOf(resp)
		right := isRoutedCorrectly(read[i].c, &got)
		if right {
			score.Passed++
		}
		if got.Outcome == Dispatch {
			score.Dispatched++
			if !right {
				score.Misroutes++
			}
		}
	}
	score.computeShares()
	return score, nil
}

// isRoutedCorrectly reports whether a case was routed as expected: by outcome
// and agents or, if it expects neither, by everything it expects. All fallbacks
// are equal, because thresholds do not choose between them.
func isRoutedCorrectly(c *Case, got *Actual) bool {
	e := c.Expect
	if AnyFallback.includes(e.Outcome) {
		e.Outcome = AnyFallback
	}
	if e.Outcome != "" || e.Agents != nil {
		return e.Outcome.includes(got.Outcome) && agentsMatch(c, got.Agents)
	}
	return len(diffExpected(c, got)) == 0
}

// viewWith returns the view with other thresholds. Policy A is the cheapest in
// a dry run; policy B would search for near misses.
func (f *thresholdSearch) viewWith(s Thresholds) *router.View {
	catalogue := *f.cfg.Registry.Catalogue
	catalogue.Fallback.Policy = capabilities.FallbackAnswer
	catalogue.Routing.MinConfidence = s.MinConfidence
	catalogue.Routing.ConfidenceThreshold = s.ConfidenceThreshold
	catalogue.Routing.AmbiguityThreshold = s.AmbiguityThreshold
	snapshot := &capabilities.Snapshot{Catalogue: &catalogue, Fleet: f.cfg.Registry.Fleet}
	return router.NewTrainedView(snapshot, f.setup.view.Lexical, dispatch.None{})
}

// storedClassifier returns the classification in the context, so that one
// router can process all cases in any order.
type storedClassifier struct{}

type classificationKey struct{}

// Classify returns the stored classification.
func (storedClassifier) Classify(ctx context.Context, _ classifier.Input) contract.Classification {
	return *ctx.Value(classificationKey{}).(*contract.Classification)
}
