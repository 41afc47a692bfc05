package lexical

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/calibration"
	"github.com/caprouter/caprouter/internal/run"
)

// heldOutPrediction is the prediction of a model for an example it was not
// trained on.
type heldOutPrediction struct {
	calibration.Trial       // out of scope if the intent of the example was excluded from training
	class             int32 // of the example
	best              int32 // predicted
}

// trialsOf returns the predictions without their classes.
func trialsOf(predictions []heldOutPrediction) []calibration.Trial {
	trials := make([]calibration.Trial, len(predictions))
	for i := range predictions {
		trials[i] = predictions[i].Trial
	}
	return trials
}

const (
	// foldCount is the number of cross-fitting folds, and smallFoldCount that
	// of a small set, whose models would be much weaker if they were trained on
	// two thirds of it.
	foldCount      = 3
	smallFoldCount = 8
	// An out-of-scope model is trained without one in excludedShare intents. Of
	// a large set one part is excluded, excludedPart; of a small one each part
	// in turn. At least minClasses are required.
	excludedShare = 4
	excludedPart  = 2
	minClasses    = 3
	// maxSmallSet is the greatest number of samples of a small set.
	maxSmallSet = 600
)

// crossFit fits the model of the whole corpus, and others whose predictions are
// measured on examples they were not trained on. Each fold holds out a part of
// every intent's examples: requests as the registry expects them. Further
// models are trained without some intents, whose examples serve as out-of-scope
// requests. Adjacent intents of the same family are excluded together, because
// out-of-scope requests usually belong to another field.
//
// A fold is trained on fewer examples than the whole model, which makes its
// predictions slightly worse than in production. They are also slightly better,
// because examples of a registry are more alike than requests. On public data
// sets the two effects cancel within two points, so neither is corrected.
//
// The reported predictions are the same, or those of other folds if examples of a small set
// are variants of one sentence: then variants are held out together, because a model that has
// learned one of them predicts the others.
func crossFit(d *trainingSet, x *declaredTexts) (whole *linearModel, trials, reported []heldOutPrediction) {
	folds, excluded := foldCount, []int{excludedPart}
	if len(d.samples) <= maxSmallSet {
		folds, excluded = smallFoldCount, []int{0, 1, 2, 3}
	}
	if d.classes < minClasses {
		excluded = nil
	}
	examples := 0
	for i := range d.samples {
		if d.samples[i].kind == kindExample {
			examples++
		}
	}
	if examples < 2 {
		folds, excluded = 0, nil
	}
	measured := folds + len(excluded)
	parts := make([][]heldOutPrediction, measured)
	groups := d.groupNearDuplicates()
	if groups != nil {
		parts = make([][]heldOutPrediction, measured+folds)
	}
	workers := runtime.GOMAXPROCS(0)
	if d.pace != nil {
		workers = 1
	}
	d.progress.setModels(1 + len(parts))
	run.ForEach(context.Background(), workers, 1+len(parts), func(_ context.Context, i int) {
		switch {
		case i > 0 && d.stopped():
		case i == 0:
			whole = fitLinear(d, func(int) bool { return true })
		case i <= folds:
			parts[i-1] = predictFold(d, x, func(i int) int { return i % folds }, i-1)
		case i > measured:
			parts[i-1] = predictFold(d, x, func(i int) int { return int(groups[i]) % folds }, i-1-measured)
		default:
			parts[i-1] = predictOutOfScope(d, x, excluded[i-1-folds])
		}
	})
	trials = slices.Concat(parts[:measured]...)
	if groups != nil {
		return whole, trials, slices.Concat(parts[measured:]...)
	}
	return whole, trials, trials
}

// nearDuplicate is the share of common words from which two examples of an intent are variants of
// one sentence.
const nearDuplicate = 0.6

// groupNearDuplicates returns for each sample of a small set the number of the first sample that
// it is a variant of, or its own number; nil if no sample is one of another, or the set is not
// small.
func (d *trainingSet) groupNearDuplicates() (groups []int32) {
	if len(d.samples) > maxSmallSet {
		return nil
	}
	first, found := make([]int32, len(d.samples)), false
	for i := range d.samples {
		first[i] = int32(i)
		for k := range i {
			if isNearDuplicate(&d.samples[i], &d.samples[k]) {
				first[i], found = first[k], true
				break
			}
		}
	}
	if !found {
		return nil
	}
	return first
}

func isNearDuplicate(a, b *trainingSample) bool {
	if a.kind != kindExample || b.kind != kindExample || a.class != b.class {
		return false
	}
	common := 0
	for _, f := range a.features[:a.words] {
		if slices.Contains(b.features[:b.words], f) {
			common++
		}
	}
	return common > 0 && float64(common) >= nearDuplicate*float64(int(a.words)+int(b.words)-common)
}

// predictFold predicts the examples of one fold with a model that is trained on
// the others.
func predictFold(d *trainingSet, x *declaredTexts, foldOf func(i int) int, fold int) []heldOutPrediction {
	heldBack := func(i int) bool { return foldOf(i) == fold && d.samples[i].kind == kindExample }
	l := fitLinear(d, func(i int) bool { return !heldBack(i) })
	return predictHeldOut(d, x, l, heldBack, false)
}

// predictOutOfScope predicts the examples of the intents of one part.
func predictOutOfScope(d *trainingSet, x *declaredTexts, part int) []heldOutPrediction {
	missing := d.excludedIntents(part)
	if !slices.Contains(missing, true) {
		return nil
	}
	l := fitLinear(d, func(i int) bool { return !missing[d.samples[i].class] })
	return predictHeldOut(d, x, l, func(i int) bool { return missing[d.samples[i].class] && d.samples[i].kind == kindExample }, true)
}

// excludedIntents chooses the classes to exclude.
func (d *trainingSet) excludedIntents(part int) []bool {
	order := make([]int, d.classes)
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.families.of[a], d.families.of[b]) })
	missing := make([]bool, d.classes)
	for place, c := range order {
		missing[c] = place*excludedShare/d.classes == part
	}
	return missing
}

// predictHeldOut predicts the samples for which on returns true.
func predictHeldOut(d *trainingSet, x *declaredTexts, l *linearModel, on func(i int) bool, outOfScope bool) []heldOutPrediction {
	scores := newClassScores(d.classes, d.families.count)
	seen := make([]uint32, d.table.Size)
	skip := func(i int32) bool { return on(int(i)) }
	var values []float32
	var trials []heldOutPrediction
	for i := range d.samples {
		if !on(i) {
			continue
		}
		if !d.yield() {
			break
		}
		s := &d.samples[i]
		for _, f := range s.features {
			seen[f] = uint32(i) + 1
		}
		var shares wordShares
		values, shares = l.weighText(values, s.features, int(s.words), unknownCount{})
		l.scoreClasses(scores.values, s.features, values)
		l.vector.addScores(scores.values, s.vector)
		v := rankScores(&scores, &d.families, len(s.features), &shares)
		addSimilarity(&v.features, x.compare(v.best, l.idf, seen, uint32(i)+1, shares.squaredNorm, skip))
		trials = append(trials, heldOutPrediction{
			Trial: calibration.Trial{Features: v.features, Correct: !outOfScope && v.best == int(s.class), OutOfScope: outOfScope},
			class: s.class, best: int32(v.best),
		})
	}
	return trials
}

const (
	// assumedOutOfScope is the expected share of out-of-scope requests, used to
	// choose the accept threshold.
	assumedOutOfScope = 0.18
	// lostExamples and minLostShare determine the share of correct answers that
	// the reject threshold may lose: lostExamples of each intent's, at least
	// minLostShare. The fewer examples, the more requests resemble none.
	lostExamples = 0.4
	minLostShare = 0.0095
	// smallSetTrials is the number of trials that count as much as priorThreshold.
	smallSetTrials = 800.0
	// targetPrecision is the required share of correct answers among those
	// accepted.
	targetPrecision = 0.98
	// precisionMargin is added to targetPrecision, because held-out examples
	// are more alike than requests.
	precisionMargin = 0.003
	// minAccepted is the minimum number of accepted predictions for their
	// precision to be significant.
	minAccepted = 100
)

// scoredTrial is a held-out prediction with its confidence.
type scoredTrial struct {
	confidence float64
	*calibration.Trial
}

// chooseThresholds chooses, from held-out predictions, the confidence below
// which an intent is rejected, and the confidence from which targetPrecision is
// reached. The latter is infinite if there is none.
func chooseThresholds(c *calibration.Model, trials []calibration.Trial, size calibration.CorpusSize) (reject, accept float64) {
	scored := make([]scoredTrial, len(trials))
	for i := range trials {
		scored[i] = scoredTrial{roundConfidence(c.Confidence(&trials[i].Features)), &trials[i]}
	}
	slices.SortFunc(scored, func(a, b scoredTrial) int { return cmp.Compare(a.confidence, b.confidence) })
	prior := 1.0
	if len(trials) > 0 {
		prior = smallSetTrials / (smallSetTrials + float64(len(trials)))
	}
	reject = c.Interpolate(prior*c.OddsAt(priorThreshold(size)) + (1-prior)*c.OddsAt(measuredRejectThreshold(scored, size)))
	return reject, max(reject, measuredAcceptThreshold(scored))
}

// priorThreshold returns the confidence below which an intent is rejected if there are no
// trials. The more examples there are, the fewer correct answers have a low confidence, and
// most predictions that have one are for requests out of scope.
func priorThreshold(size calibration.CorpusSize) float64 {
	return min(max(MinActionConfidence, minPriorThreshold+priorThresholdGrowth*size.Examples), maxPriorThreshold)
}

const (
	minPriorThreshold    = 0.3
	priorThresholdGrowth = 0.16 // by CorpusSize.Examples
	// maxPriorThreshold is reached with eight examples an intent: registries with more have trials.
	maxPriorThreshold = 0.65
)

// measuredRejectThreshold returns the greatest confidence that rejects no more correct
// answers than may be lost. The trials are sorted by confidence.
func measuredRejectThreshold(trials []scoredTrial, size calibration.CorpusSize) (threshold float64) {
	correct := 0.0
	for _, t := range trials {
		if t.Correct {
			correct++
		}
	}
	maxLost := max(minLostShare, min(0.1, lostExamples/math.Expm1(size.Examples))) * correct
	lost := 0.0
	for _, t := range trials {
		threshold = t.confidence
		if t.Correct {
			if lost++; lost > maxLost {
				break
			}
		}
	}
	return threshold
}

// measuredAcceptThreshold returns the least confidence from which targetPrecision is
// reached if assumedOutOfScope of the requests are out of scope, or infinity. The trials are
// sorted by confidence.
func measuredAcceptThreshold(trials []scoredTrial) float64 {
	outOfScope := 0.0
	for _, t := range trials {
		if t.OutOfScope {
			outOfScope++
		}
	}
	weight := 0.0 // of a trial out of scope
	if outOfScope > 0 {
		weight = assumedOutOfScope / (1 - assumedOutOfScope) * (float64(len(trials)) - outOfScope) / outOfScope
	}
	threshold := math.Inf(1)
	var accepted, correct, count float64
	for i, t := range slices.Backward(trials) {
		switch {
		case t.OutOfScope:
			accepted += weight
		case t.Correct:
			correct++
			accepted++
		default:
			accepted++
		}
		count++
		equalFollows := i > 0 && trials[i-1].confidence == t.confidence
		if !equalFollows && count >= minAccepted && correct >= (targetPrecision+precisionMargin)*accepted {
			threshold = t.confidence
		}
	}
	return threshold
}

// Report states what a model learned from, and how well it predicts examples
// that it was not trained on (cross-fitting). The shares are estimates for
// requests that resemble the examples.
type Report struct {
	Examples int // distinct examples of all intents
	// Trials is the number of held-out predictions, and Accuracy the share of
	// correct ones. Without trials, Accuracy is 0.
	Trials   int
	Accuracy float64
	// AgentAccuracy is the share of predictions whose intent is served by an agent that
	// serves the right one.
	AgentAccuracy float64
	Intents       []IntentReport // by name
	// Confusions are the intents that held-out examples were taken for, the
	// most frequent first.
	Confusions []Confusion
}

// IntentReport is the part of a Report about one intent.
type IntentReport struct {
	Intent   string
	Examples int
	Trials   int
	Accuracy float64
}

// Confusion counts the held-out examples of Intent that were taken for Got.
type Confusion struct {
	Intent, Got string
	Count       int
}

// Report returns the result of cross-fitting.
func (m *Model) Report() Report { return m.report }

// newReport counts the in-scope trials by intent. docs are the documents that
// trials refer to by number.
func newReport(docs []IntentDoc, trials []heldOutPrediction) Report {
	r := Report{Intents: make([]IntentReport, len(docs))}
	for i := range docs {
		n := len(sortedUnique(docs[i].Examples))
		r.Intents[i] = IntentReport{Intent: docs[i].Name, Examples: n}
		r.Examples += n
	}
	confused := map[Confusion]int{}
	right, rightAgent, rightOf := 0, 0, make([]int, len(docs))
	for i := range trials {
		t := &trials[i]
		if t.OutOfScope {
			continue
		}
		r.Trials++
		r.Intents[t.class].Trials++
		if t.Correct || slices.ContainsFunc(docs[t.best].Agents, func(id string) bool { return slices.Contains(docs[t.class].Agents, id) }) {
			rightAgent++
		}
		if t.Correct {
			right++
			rightOf[t.class]++
		} else {
			confused[Confusion{Intent: docs[t.class].Name, Got: docs[t.best].Name}]++
		}
	}
	r.Accuracy = roundConfidence(float64(right) / float64(max(r.Trials, 1)))
	r.AgentAccuracy = roundConfidence(float64(rightAgent) / float64(max(r.Trials, 1)))
	for i := range r.Intents {
		r.Intents[i].Accuracy = roundConfidence(float64(rightOf[i]) / float64(max(r.Intents[i].Trials, 1)))
	}
	for c, n := range confused {
		c.Count = n
		r.Confusions = append(r.Confusions, c)
	}
	slices.SortFunc(r.Confusions, func(a, b Confusion) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Intent, b.Intent), strings.Compare(a.Got, b.Got))
	})
	return r
}
