package golden

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/router"
)

// FewFitCases is the number of train cases below which a proposal is unreliable:
// one case more or less changes its precision by 2 % or more.
const FewFitCases = 50

// DefaultPrecision is the default share of dispatches that must be correct.
const DefaultPrecision = 0.98

// Thresholds are the thresholds of a registry.
type Thresholds struct {
	// MinConfidence is nil for the default of the classification's source.
	MinConfidence       *float64 `json:"min_confidence"`
	ConfidenceThreshold float64  `json:"confidence_threshold"`
	AmbiguityThreshold  float64  `json:"ambiguity_threshold"`
}

// FitScore is the result of thresholds on a set of cases.
type FitScore struct {
	Setting    Thresholds `json:"setting"`
	Cases      int        `json:"cases"`
	Passed     int        `json:"passed"`     // routed, refused or clarified as expected
	Dispatched int        `json:"dispatched"` // correct or not
	Misroutes  int        `json:"misroutes"`  // dispatched, but not to the expected agents
	Coverage   float64    `json:"coverage"`   // dispatched ÷ cases
	// Precision is the share of dispatches that are correct; nil if nothing was
	// dispatched.
	Precision *float64 `json:"precision"`
}

// reachesPrecision reports whether the precision of the dispatches is reached.
func (s *FitScore) reachesPrecision(precision float64) bool {
	return s.Precision != nil && *s.Precision >= precision
}

// computeShares computes the shares from the counts.
func (s *FitScore) computeShares() {
	if s.Dispatched > 0 {
		right := float64(s.Dispatched-s.Misroutes) / float64(s.Dispatched)
		s.Precision = &right
	}
	if s.Cases > 0 {
		s.Coverage = float64(s.Dispatched) / float64(s.Cases)
	}
}

// FitResult is a proposal for the thresholds of a registry, chosen on the train
// split and evaluated on held-out cases.
type FitResult struct {
	Registry    string     `json:"registry"`
	Classifier  Classifier `json:"classifier"`
	Interrupted bool       `json:"interrupted,omitzero"`
	Target      float64    `json:"target"`   // requested precision
	Reached     bool       `json:"reached"`  // some thresholds reach it on the train split
	Settings    int        `json:"settings"` // number of thresholds tried

	TrainNow    FitScore   `json:"train_now"`    // current thresholds
	TrainBest   FitScore   `json:"train_best"`   // the proposal, or the best approximation if Reached is false
	HeldOutNow  *FitScore  `json:"held_out_now"` // nil without held-out cases
	HeldOutBest *FitScore  `json:"held_out_best"`
	Curve       []FitScore `json:"curve"` // held-out scores of the proposal for other values of min_confidence
}

// FitThresholds searches for the thresholds that route most cases of the train
// split as expected, among those whose dispatches reach the precision (0 =
// DefaultPrecision) and that dispatch something. It changes nothing. Each
// request is classified once, because the thresholds apply after
// classification.
func FitThresholds(ctx context.Context, cfg Config, precision float64) (*FitResult, error) {
	if precision == 0 {
		precision = DefaultPrecision
	}
	if !(precision > 0 && precision <= 1) {
		return nil, fmt.Errorf("golden: the precision must be over 0 and at most 1, got %v", precision)
	}
	unscripted := slices.DeleteFunc(slices.Clone(cfg.Cases), func(c Case) bool { return c.LLM != nil })
	train := FilterCases(unscripted, Filter{Splits: []string{Train}})
	if len(train) == 0 {
		return nil, errors.New("there is no case to fit on: mark some with `split: train`, and others with `split: validation` or `split: test` to see what it is worth")
	}
	held := FilterCases(unscripted, Filter{Splits: []string{Validation, Test}})
	g, err := cfg.newRouting()
	if err != nil {
		return nil, err
	}
	defer g.closeClassifier()
	f := thresholdSearch{cfg: &cfg, setup: g}
	read := f.classifyCases(ctx, append(train, held...))
	for i := range read {
		if isUnrecorded(&read[i].clf) {
			return nil, fmt.Errorf("case %s: %s", read[i].c.ID, errNotRecorded)
		}
	}
	return f.search(ctx, read[:len(train)], read[len(train):], precision)
}

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
		clf, err := f.setup.router.Classify(ctx, cases[i].dryRunRequest(), testCaller())
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
		resp, err := r.Handle(context.WithValue(ctx, classificationKey{}, &read[i].clf), read[i].c.dryRunRequest(), testCaller())
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
	return router.NewTrainedView(snapshot, f.setup.view.Lexical, noDispatcher{})
}

// storedClassifier returns the classification in the context, so that one
// router can process all cases in any order.
type storedClassifier struct{}

type classificationKey struct{}

// Classify returns the stored classification.
func (storedClassifier) Classify(ctx context.Context, _ classifier.Input) contract.Classification {
	return *ctx.Value(classificationKey{}).(*contract.Classification)
}

// Patch returns the registry snippet that applies the proposal, with the
// previous values as comments. It returns "" if nothing changes or the
// precision is not reached.
func (f *FitResult) Patch() string {
	if !f.Reached {
		return ""
	}
	now, best := f.TrainNow.Setting, f.TrainBest.Setting
	var lines []string
	add := func(key, was, will string) {
		if was != will {
			lines = append(lines, fmt.Sprintf("  %s: %s # was %s", key, will, was))
		}
	}
	add("confidence_threshold", formatNumber(now.ConfidenceThreshold), formatNumber(best.ConfidenceThreshold))
	add("min_confidence", formatOptional(now.MinConfidence), formatOptional(best.MinConfidence))
	add("ambiguity_threshold", formatNumber(now.AmbiguityThreshold), formatNumber(best.AmbiguityThreshold))
	if len(lines) == 0 {
		return ""
	}
	return "routing:\n" + strings.Join(lines, "\n") + "\n"
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func formatOptional(v *float64) string {
	if v == nil {
		return "not set"
	}
	return formatNumber(*v)
}
