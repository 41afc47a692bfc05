package golden

import (
	"cmp"
	"math"
	"slices"

	"github.com/caprouter/caprouter/internal/lexical"
)

// wantedPrecision is the precision required of answers without a model.
const wantedPrecision = 0.98

// Sources of the accept threshold. It is never chosen on the test rows.
const (
	AcceptFromTraining   = "training"   // the model's own threshold, as in a router
	AcceptFromValidation = "validation" // on the rows of BenchConfig.Validation
)

// BenchReport contains the results of a benchmark. Shares are from 0 to 1; a
// figure that does not apply is null.
//
// A row is correct if the best intent is the row's or, with several labels, if
// the set of intents is. An answer is claimed if its intent is not
// contract.Unknown.
type BenchReport struct {
	N        int      `json:"n"`        // in-scope rows
	Accuracy *float64 `json:"accuracy"` // best intent correct (one of several labels), without rejection
	// DomainAccuracy is the share of rows whose first predicted domain is
	// correct, AgentAccuracy the share that the matcher routes to the row's
	// agent at any confidence.
	DomainAccuracy *float64 `json:"domain_accuracy"`
	AgentAccuracy  *float64 `json:"agent_accuracy"`
	// InScopeAccuracy is the share of in-scope rows that are claimed and
	// correct, OutOfScopeRecall the share of out-of-scope rows that are not
	// claimed.
	InScopeAccuracy  *float64 `json:"in_scope_accuracy"`
	OutOfScopeRecall *float64 `json:"oos_recall"`
	OutOfScopeAUROC  *float64 `json:"oos_auroc"`
	// ECE is the expected calibration error of the best intents of in-scope
	// rows; with several labels, of the intents of all parts.
	ECE      *float64 `json:"ece"`
	ECEFloor *float64 `json:"ece_floor"` // of a perfectly calibrated model
	// Coverage is the share of all rows, including out-of-scope ones, with a
	// confidence of at least Accept, which aims at 98 % precision.
	// AchievedPrecision is the actual precision. HindsightCoverage is the
	// greatest coverage at 98 % precision of any threshold, chosen with
	// knowledge of the labels.
	Coverage          *float64 `json:"coverage_at_98_precision"`
	AchievedPrecision *float64 `json:"achieved_precision"`
	HindsightCoverage *float64 `json:"coverage_at_98_precision_hindsight"`
	TrainMS           *float64 `json:"train_ms"`
	ClassifyP50       *float64 `json:"classify_us_p50"`
	ClassifyP99       *float64 `json:"classify_us_p99"`
	AllocsPerOp       *float64 `json:"allocs_per_op"`
	ModelBytes        *int     `json:"model_bytes"`

	// With several labels: the set of intents equals the row's. The calibration
	// error compares this with the confidence of the whole prompt, so it
	// includes missed intents.
	ExactSetAccuracy *float64 `json:"exact_set_accuracy,omitempty"`
	ExactSetECE      *float64 `json:"exact_set_ece,omitempty"`
	ExactSetECEFloor *float64 `json:"exact_set_ece_floor,omitempty"`
	Top5Accuracy     *float64 `json:"top5_accuracy,omitempty"` // for Tools only

	OutOfScopeN  int            `json:"oos_n"`
	Intents      int            `json:"intents"`
	Examples     int            `json:"examples"`
	Unseen       int            `json:"unseen"` // in-scope rows with labels that are not in the training data: always wrong
	Calibrated   *bool          `json:"calibrated"`
	Threshold    *float64       `json:"threshold"` // minimum confidence of a claimed intent
	Accept       *float64       `json:"accept"`    // null if nothing is accepted
	AcceptSource string         `json:"accept_source,omitempty"`
	Confusions   []ConfusedPair `json:"confusions"` // the most frequent ones
}

// ConfusedPair counts how often a label was mistaken for another.
type ConfusedPair struct {
	Label string `json:"label"`
	Got   string `json:"got"`
	Count int    `json:"count"`
}

// maxConfusions bounds BenchReport.Confusions.
const maxConfusions = 10

// roundFigure rounds a figure to six digits.
func roundFigure(v float64) *float64 {
	v = math.Round(v*1e6) / 1e6
	return &v
}

// optionalFigure returns nil if there was nothing to measure.
func optionalFigure(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return roundFigure(v)
}

func shareFigure(part, whole int) *float64 {
	return optionalFigure(float64(part)/float64(max(whole, 1)), whole > 0)
}

// addModel adds the properties of the model.
func (r *BenchReport) addModel(m *lexical.Model) {
	calibrated, bytes := m.Calibrated(), m.SizeBytes()
	r.Calibrated, r.ModelBytes, r.Threshold = &calibrated, &bytes, roundFigure(m.RejectThreshold())
}

// addPredictions adds the figures that depend on the predictions only.
func (r *BenchReport) addPredictions(predictions []rowPrediction, registry *benchRegistry, multi bool) {
	var best, domain, agent, exact, claimedRight, silent int
	sameDomains := false // the registry contains the domain of some row
	for i := range predictions {
		v := &predictions[i]
		if v.row.isOutOfScope() {
			silent += countTrue(!v.claimed)
			continue
		}
		sameDomains = sameDomains || v.domainKnown
		r.Unseen += countTrue(!v.labelKnown)
		best += countTrue(v.bestCorrect)
		domain += countTrue(v.domainCorrect)
		agent += countTrue(v.agentCorrect)
		exact += countTrue(v.correct)
		claimedRight += countTrue(v.claimed && v.correct)
	}
	r.Accuracy = shareFigure(best, r.N)
	r.InScopeAccuracy = shareFigure(claimedRight, r.N)
	r.OutOfScopeRecall = shareFigure(silent, r.OutOfScopeN)
	if sameDomains && !multi {
		r.DomainAccuracy, r.AgentAccuracy = shareFigure(domain, r.N), shareFigure(agent, r.N)
	}
	rows := scoredRows(predictions)
	r.OutOfScopeAUROC = optionalFigure(auroc(rows))
	intents := rows
	if multi {
		r.ExactSetAccuracy = shareFigure(exact, r.N)
		r.ExactSetECE = optionalFigure(calibrationError(rows))
		r.ExactSetECEFloor = optionalFigure(calibrationNull(rows))
		intents = allParts(predictions)
	} else {
		r.Confusions = topConfusions(predictions, registry)
	}
	r.ECE = optionalFigure(calibrationError(intents))
	r.ECEFloor = optionalFigure(calibrationNull(intents))
}

// addOperatingPoint adds the figures for accepting from the confidence on.
func (r *BenchReport) addOperatingPoint(predictions []rowPrediction, accept float64, source string) {
	rows := acceptableRows(predictions)
	point, ok := operateAt(rows, max(accept, 0)) // rejected rows have a negative confidence
	r.Coverage, r.AchievedPrecision = roundFigure(point.Coverage), optionalFigure(point.Precision, ok)
	best, found := widestCoverage(riskCoverageCurve(rows), wantedPrecision)
	if !found || best.Threshold < 0 {
		best.Coverage = 0
	}
	r.HindsightCoverage = roundFigure(best.Coverage)
	r.Accept, r.AcceptSource = optionalFigure(accept, !math.IsInf(accept, 1)), source
}

// topConfusions returns the most frequent wrong answers, with the labels of the
// data set.
func topConfusions(predictions []rowPrediction, registry *benchRegistry) []ConfusedPair {
	counts := map[ConfusedPair]int{}
	for i := range predictions {
		if v := &predictions[i]; !v.row.isOutOfScope() && !v.bestCorrect {
			counts[ConfusedPair{Label: v.row.Intent, Got: registry.intents.labelOf(v.best)}]++
		}
	}
	list := make([]ConfusedPair, 0, len(counts))
	for c, n := range counts {
		c.Count = n
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b ConfusedPair) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Label, b.Label), cmp.Compare(a.Got, b.Got))
	})
	return list[:min(len(list), maxConfusions)]
}

func countTrue(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
