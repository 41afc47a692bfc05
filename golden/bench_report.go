package golden

import (
	"cmp"
	"math"
	"slices"

	"github.com/caprouter/caprouter/internal/lexical"
)

// wantedPrecision is the precision answers without a model are asked for.
const wantedPrecision = 0.98

// The ways the accept threshold of a BenchReport is chosen, never on the rows it
// is measured on.
const (
	AcceptFromTraining   = "training"   // what the model says itself, as a router uses it
	AcceptFromValidation = "validation" // on the rows of BenchConfig.Validation
)

// BenchReport are the figures of a bench. Shares are from 0 to 1; a figure that
// does not apply to the sets is null.
//
// A row is right when the best intent is the row's or, with labels joined by #,
// when the set of intents is. "Claimed" is an answer the classifier stands by:
// not contract.Unknown.
type BenchReport struct {
	N        int      `json:"n"`        // rows in scope
	Accuracy *float64 `json:"accuracy"` // best intent right (of several labels: one of them), nothing rejected
	// DomainAccuracy is the share whose first proposed domain is the row's;
	// AgentAccuracy the share that the matcher gives to the row's agent on the
	// proposal, whatever its confidence.
	DomainAccuracy *float64 `json:"domain_accuracy"`
	AgentAccuracy  *float64 `json:"agent_accuracy"`
	// InScopeAccuracy is the share of rows in scope that are claimed and right,
	// OutOfScopeRecall that of rows out of scope that are not claimed.
	InScopeAccuracy  *float64 `json:"in_scope_accuracy"`
	OutOfScopeRecall *float64 `json:"oos_recall"`
	OutOfScopeAUROC  *float64 `json:"oos_auroc"`
	// ECE is the calibration error of the best intents of the rows in scope; with
	// Multi, of every intent that a prompt was divided into, held against its
	// being one of the row's.
	ECE      *float64 `json:"ece"`
	ECEFloor *float64 `json:"ece_floor"` // what chance alone gives
	// Coverage is the share of all rows, those out of scope included, that are
	// accepted from the confidence Accept on, which is meant to give 98 %
	// precision; AchievedPrecision is what it gave. HindsightCoverage is the most
	// that any threshold, chosen knowing the answers, covers at 98 %.
	Coverage          *float64 `json:"coverage_at_98_precision"`
	AchievedPrecision *float64 `json:"achieved_precision"`
	HindsightCoverage *float64 `json:"coverage_at_98_precision_hindsight"`
	TrainMS           *float64 `json:"train_ms"`
	ClassifyP50       *float64 `json:"classify_us_p50"`
	ClassifyP99       *float64 `json:"classify_us_p99"`
	AllocsPerOp       *float64 `json:"allocs_per_op"`
	ModelBytes        *int     `json:"model_bytes"`

	// Multi only: the set of intents is the row's. Its calibration error holds the
	// confidence of the whole prompt against that, and so counts what was missed.
	ExactSetAccuracy *float64 `json:"exact_set_accuracy,omitempty"`
	ExactSetECE      *float64 `json:"exact_set_ece,omitempty"`
	ExactSetECEFloor *float64 `json:"exact_set_ece_floor,omitempty"`
	Top5Accuracy     *float64 `json:"top5_accuracy,omitempty"` // Tools only

	OutOfScopeN  int            `json:"oos_n"`
	Intents      int            `json:"intents"`
	Examples     int            `json:"examples"`
	Unseen       int            `json:"unseen"` // rows in scope whose label nothing was trained on: always wrong
	Calibrated   *bool          `json:"calibrated"`
	Threshold    *float64       `json:"threshold"` // the least confidence that is claimed
	Accept       *float64       `json:"accept"`    // null when nothing is accepted
	AcceptSource string         `json:"accept_source,omitempty"`
	Confusions   []ConfusedPair `json:"confusions"` // the most frequent ones
}

// ConfusedPair is how often one label was taken for another.
type ConfusedPair struct {
	Label string `json:"label"`
	Got   string `json:"got"`
	Count int    `json:"count"`
}

// maxConfusions bounds BenchReport.Confusions.
const maxConfusions = 10

// figure is a measure, to six digits, which is more than any of them is worth.
func figure(v float64) *float64 {
	v = math.Round(v*1e6) / 1e6
	return &v
}

// figureIf is null when there was nothing to measure.
func figureIf(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return figure(v)
}

func share(part, whole int) *float64 {
	return figureIf(float64(part)/float64(max(whole, 1)), whole > 0)
}

// describe fills in what the model says of itself.
func (r *BenchReport) describe(m *lexical.Model) {
	calibrated, bytes := m.Calibrated(), m.SizeBytes()
	r.Calibrated, r.ModelBytes, r.Threshold = &calibrated, &bytes, figure(m.RejectThreshold())
}

// count fills in what follows from the verdicts alone.
func (r *BenchReport) count(verdicts []verdict, registry *benchRegistry, multi bool) {
	var best, domain, agent, exact, claimedRight, silent int
	sameDomains := false // a row has a domain that is in the registry
	for i := range verdicts {
		v := &verdicts[i]
		if v.row.outOfScope() {
			silent += one(!v.claimed)
			continue
		}
		sameDomains = sameDomains || v.domainKnown
		r.Unseen += one(!v.labelKnown)
		best += one(v.bestRight)
		domain += one(v.domainRight)
		agent += one(v.agentRight)
		exact += one(v.right)
		claimedRight += one(v.claimed && v.right)
	}
	r.Accuracy = share(best, r.N)
	r.InScopeAccuracy = share(claimedRight, r.N)
	r.OutOfScopeRecall = share(silent, r.OutOfScopeN)
	if sameDomains && !multi {
		r.DomainAccuracy, r.AgentAccuracy = share(domain, r.N), share(agent, r.N)
	}
	rows := scores(verdicts)
	r.OutOfScopeAUROC = figureIf(auroc(rows))
	intents := rows
	if multi {
		r.ExactSetAccuracy = share(exact, r.N)
		r.ExactSetECE = figureIf(calibrationError(rows))
		r.ExactSetECEFloor = figureIf(calibrationFloor(rows))
		intents = allParts(verdicts)
	} else {
		r.Confusions = confusions(verdicts, registry)
	}
	r.ECE = figureIf(calibrationError(intents))
	r.ECEFloor = figureIf(calibrationFloor(intents))
}

// operate fills in what accepting from that confidence on gives.
func (r *BenchReport) operate(verdicts []verdict, accept float64, source string) {
	rows := claims(verdicts)
	point, ok := operate(rows, max(accept, 0)) // what is not claimed is below 0
	r.Coverage, r.AchievedPrecision = figure(point.Coverage), figureIf(point.Precision, ok)
	best, found := widest(riskCoverage(rows), wantedPrecision)
	if !found || best.Threshold < 0 {
		best.Coverage = 0
	}
	r.HindsightCoverage = figure(best.Coverage)
	r.Accept, r.AcceptSource = figureIf(accept, !math.IsInf(accept, 1)), source
}

// confusions are the most frequent wrong answers, as the sets call them.
func confusions(verdicts []verdict, registry *benchRegistry) []ConfusedPair {
	counts := map[ConfusedPair]int{}
	for i := range verdicts {
		if v := &verdicts[i]; !v.row.outOfScope() && !v.bestRight {
			counts[ConfusedPair{Label: v.row.Intent, Got: registry.intents.label(v.best)}]++
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

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
