package golden

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
		return nil, fmt.Errorf("thresholds are fitted on cases with `split: train`, and none of the selected cases (%d) has it: "+
			"add `split: train` to about two thirds of the cases, and `split: validation` to the others, which measure the proposal", len(cfg.Cases))
	}
	held := FilterCases(unscripted, Filter{Splits: []string{Validation, Test}})
	g, err := cfg.newRouting(ctx)
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
