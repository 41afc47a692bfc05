package golden

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/router"
)

// DefaultPrecision is the share of dispatches that must be right.
const DefaultPrecision = 0.98

// Thresholds is one choice of the thresholds of a registry.
type Thresholds struct {
	// MinConfidence is nil where it is left to the source of a classification.
	MinConfidence       *float64 `json:"min_confidence"`
	ConfidenceThreshold float64  `json:"confidence_threshold"`
	AmbiguityThreshold  float64  `json:"ambiguity_threshold"`
}

// FitScore is what a setting makes of some cases.
type FitScore struct {
	Setting    Thresholds `json:"setting"`
	Cases      int        `json:"cases"`
	Passed     int        `json:"passed"`     // routed, refused or asked back as expected
	Dispatched int        `json:"dispatched"` // given to agents, right or wrong
	Misroutes  int        `json:"misroutes"`  // dispatched, and should not have been, or to others
	Coverage   float64    `json:"coverage"`   // dispatched ÷ cases
	// Precision is the share of the dispatched that are right; null when nothing
	// is dispatched, which is no precision at all.
	Precision *float64 `json:"precision"`
}

// reaches reports whether the precision is there: of what is dispatched.
func (s *FitScore) reaches(precision float64) bool {
	return s.Precision != nil && *s.Precision >= precision
}

// rate works out the shares from the counts.
func (s *FitScore) rate() {
	if s.Dispatched > 0 {
		right := float64(s.Dispatched-s.Misroutes) / float64(s.Dispatched)
		s.Precision = &right
	}
	if s.Cases > 0 {
		s.Coverage = float64(s.Dispatched) / float64(s.Cases)
	}
}

// FitResult is a proposal for the thresholds of a registry: chosen on the train split
// alone, shown on the cases that were held out.
type FitResult struct {
	Registry    string     `json:"registry"`
	Classifier  Classifier `json:"classifier"`
	Interrupted bool       `json:"interrupted,omitzero"`
	Target      float64    `json:"target"`   // the precision that was asked for
	Reached     bool       `json:"reached"`  // some setting has it on the train split
	Settings    int        `json:"settings"` // that were tried

	TrainNow    FitScore   `json:"train_now"`    // the registry as it is
	TrainBest   FitScore   `json:"train_best"`   // the proposal; unless reached, what comes nearest
	HeldOutNow  *FitScore  `json:"held_out_now"` // null without held-out cases
	HeldOutBest *FitScore  `json:"held_out_best"`
	Curve       []FitScore `json:"curve"` // held out: the proposal at other values of min_confidence
}

// FitThresholds tries the thresholds on the cases of the train split and returns
// the setting that routes most of them as expected among those whose dispatches
// are right in at least precision (0 = DefaultPrecision) of all, and that
// dispatch something. It changes nothing. Each request is read once: the thresholds act behind that.
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
	g, err := cfg.rig()
	if err != nil {
		return nil, err
	}
	defer g.close()
	f := fitter{cfg: &cfg, rig: g}
	read := f.read(ctx, append(train, held...))
	for i := range read {
		if unrecorded(&read[i].clf) {
			return nil, fmt.Errorf("case %s: %s", read[i].c.ID, recordAgain)
		}
	}
	return f.fit(ctx, read[:len(train)], read[len(train):], precision)
}

// fitter tries settings on cases that have been read.
type fitter struct {
	cfg *Config
	rig *rig
}

// reading is a case and what the request was taken for.
type reading struct {
	c   *Case
	clf contract.Classification
	err error
}

func (f *fitter) read(ctx context.Context, cases []Case) []reading {
	read := make([]reading, len(cases))
	f.cfg.each(ctx, len(cases), func(ctx context.Context, i int) {
		read[i].c = &cases[i]
		clf, err := f.rig.router.Classify(ctx, cases[i].request(), caller())
		if err != nil {
			read[i].err = err
			return
		}
		read[i].clf = *clf
	})
	return read
}

func (f *fitter) fit(ctx context.Context, train, held []reading, precision float64) (*FitResult, error) {
	fit := &FitResult{Registry: f.cfg.Registry.Catalogue.Version, Classifier: f.rig.setup(), Target: precision}
	if ctx.Err() != nil {
		return nil, ctx.Err() // nothing has been tried
	}
	now := settingOf(f.cfg.Registry.Catalogue.Routing)
	var err error
	if fit.TrainNow, err = f.score(ctx, now, train); err != nil {
		return nil, err
	}
	settings := grid()
	scores := make([]*FitScore, len(settings))
	f.cfg.each(ctx, len(settings), func(ctx context.Context, i int) {
		if s, err := f.score(ctx, settings[i], train); err == nil && ctx.Err() == nil {
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
		if better(s, &fit.TrainBest, now, precision) {
			fit.TrainBest = *s
		}
	}
	fit.Reached = fit.TrainBest.reaches(precision)
	// What was held out is looked at once the choice is made.
	return fit, f.holdOut(context.WithoutCancel(ctx), fit, now, held)
}

func (f *fitter) holdOut(ctx context.Context, fit *FitResult, now Thresholds, held []reading) error {
	if len(held) == 0 {
		return nil
	}
	before, err := f.score(ctx, now, held)
	if err != nil {
		return err
	}
	after, err := f.score(ctx, fit.TrainBest.Setting, held)
	if err != nil {
		return err
	}
	fit.HeldOutNow, fit.HeldOutBest = &before, &after
	for _, v := range confidences() {
		s := fit.TrainBest.Setting
		s.MinConfidence = &v
		point, err := f.score(ctx, s, held)
		if err != nil {
			return err
		}
		fit.Curve = append(fit.Curve, point)
	}
	return nil
}

// better reports whether a is to be preferred to b: what reaches the precision
// first, among these what is routed as expected; among the others what comes
// nearest to it. Then fewer misroutes, then what is nearer to the registry as
// it is.
func better(a, b *FitScore, now Thresholds, precision float64) bool {
	return cmp.Or(
		cmp.Compare(a.worth(precision), b.worth(precision)),
		cmp.Compare(a.Passed, b.Passed),
		cmp.Compare(b.Misroutes, a.Misroutes),
		cmp.Compare(now.distance(b.Setting), now.distance(a.Setting)),
	) > 0
}

// worth is the precision as far as it is asked for. A setting that dispatches
// nothing is worth less than any that does.
func (s *FitScore) worth(precision float64) float64 {
	if s.Precision == nil {
		return -1
	}
	return min(*s.Precision, precision)
}

func (s Thresholds) distance(to Thresholds) float64 {
	// A registry without min_confidence is as far from every value as one can be,
	// so that it is proposed only where it makes a difference.
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

func settingOf(r capabilities.Routing) Thresholds {
	return Thresholds{r.MinConfidence, r.ConfidenceThreshold, r.AmbiguityThreshold}
}

// confidences are the values of min_confidence that are tried.
func confidences() []float64 {
	var list []float64
	for n := 6; n <= 19; n++ {
		list = append(list, float64(n*5)/100)
	}
	return append(list, 0.98)
}

// grid are the settings that are tried. Scores are sums of 0.5, 0.3 a domain and
// −0.2 (003 §3), so few values of the match threshold differ.
func grid() []Thresholds {
	var list []Thresholds
	for _, match := range []float64{0.3, 0.5, 0.65, 0.8, 1.1} {
		for _, ambiguity := range []float64{0, 0.05, 0.1, 0.15, 0.2, 0.3} {
			for _, v := range confidences() {
				list = append(list, Thresholds{&v, match, ambiguity})
			}
		}
	}
	return list
}

// score routes the cases under the setting.
func (f *fitter) score(ctx context.Context, s Thresholds, read []reading) (FitScore, error) {
	score := FitScore{Setting: s, Cases: len(read)}
	r, err := f.rig.newRouter(f.view(s), alreadyRead{}, true)
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
		resp, err := r.Handle(context.WithValue(ctx, readingKey{}, &read[i].clf), read[i].c.request(), caller())
		if err != nil {
			continue
		}
		got := gotOf(resp)
		right := routedRight(read[i].c, &got)
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
	score.rate()
	return score, nil
}

// routedRight reports whether a case went where it should: by outcome and agents
// or, where it names neither, by all that it names. Any fallback is as good as
// another: thresholds do not choose between them.
func routedRight(c *Case, got *Actual) bool {
	e := c.Expect
	if AnyFallback.covers(e.Outcome) {
		e.Outcome = AnyFallback
	}
	if e.Outcome != "" || e.Agents != nil {
		return e.Outcome.covers(got.Outcome) && agentsFit(c, got.Agents)
	}
	return len(differences(c, got)) == 0
}

// view is that of the rig with other thresholds. Policy A says nothing in a dry
// run, where B looks for near misses that nobody reads.
func (f *fitter) view(s Thresholds) *router.View {
	catalogue := *f.cfg.Registry.Catalogue
	catalogue.Fallback.Policy = capabilities.FallbackAnswer
	catalogue.Routing.MinConfidence = s.MinConfidence
	catalogue.Routing.ConfidenceThreshold = s.ConfidenceThreshold
	catalogue.Routing.AmbiguityThreshold = s.AmbiguityThreshold
	snapshot := &capabilities.Snapshot{Catalogue: &catalogue, Fleet: f.cfg.Registry.Fleet}
	return router.NewTrainedView(snapshot, f.rig.view.Lexical, nobody{})
}

// alreadyRead is a classifier that says what the context of Handle holds: one
// router serves all cases, and their order does not matter.
type alreadyRead struct{}

type readingKey struct{}

// Classify returns the classification that was made before.
func (alreadyRead) Classify(ctx context.Context, _ classifier.Input) contract.Classification {
	return *ctx.Value(readingKey{}).(*contract.Classification)
}
