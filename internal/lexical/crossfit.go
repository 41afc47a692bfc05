package lexical

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"github.com/caprouter/caprouter/internal/run"
)

// A trial is what a model said about an example it had not seen.
type heldOutPrediction struct {
	features   confidenceFeatures
	correct    bool
	outOfScope bool // the example's intent had been kept from the model: whatever it says is wrong
}

const (
	// foldCount is how many parts the examples are cut into.
	foldCount = 3
	// excludedShare is one in how many intents another fold does without, of which
	// quarter says which; leastClasses are needed for that.
	excludedShare = 4
	excludedPart  = 2
	minClasses    = 3
)

// crossFit fits the model of the whole corpus, and tries others on what they have
// not learned from. Each of the folds holds a part of every intent's examples
// back, so that each example is new to one model; these are requests as the
// registry expects them. One more model does without some intents, and their
// examples play the requests nobody declared. Which intents? A run of them with
// those of one family together, for what is foreign comes from another field more
// often than from next door.
//
// A fold learns from fewer examples than the whole model has, which makes its
// trials a little harder than requests would be. They are also a little easier,
// because the examples of a registry are more like each other than like what
// people ask. On public sets the two cancel out within two points, so that
// neither is corrected for.
func crossFit(d *trainingSet) (*linearModel, []heldOutPrediction) {
	var whole *linearModel
	parts := make([][]heldOutPrediction, foldCount+1)
	run.ForEach(context.Background(), runtime.GOMAXPROCS(0), foldCount+2, func(_ context.Context, i int) {
		switch {
		case i == 0:
			whole = fitLinear(d, func(int) bool { return true })
		case i <= foldCount:
			parts[i-1] = predictFold(d, i-1)
		default:
			parts[i-1] = predictOutOfScope(d)
		}
	})
	return whole, slices.Concat(parts...)
}

// predictFold tries a model on the examples of a fold, which were held back from it.
func predictFold(d *trainingSet, fold int) []heldOutPrediction {
	heldBack := func(i int) bool { return i%foldCount == fold && !d.samples[i].fitOnly }
	l := fitLinear(d, func(i int) bool { return !heldBack(i) })
	return predictHeldOut(d, l, heldBack, false)
}

// predictOutOfScope tries a model on the examples of intents it does not have.
func predictOutOfScope(d *trainingSet) []heldOutPrediction {
	if d.classes < minClasses {
		return nil
	}
	missing := d.excludedIntents()
	l := fitLinear(d, func(i int) bool { return !missing[d.samples[i].class] })
	return predictHeldOut(d, l, func(i int) bool { return missing[d.samples[i].class] && !d.samples[i].fitOnly }, true)
}

// excludedIntents chooses the classes to leave out.
func (d *trainingSet) excludedIntents() []bool {
	order := make([]int, d.classes)
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.family[a], d.family[b]) })
	missing := make([]bool, d.classes)
	for place, c := range order {
		missing[c] = place*excludedShare/d.classes == excludedPart
	}
	return missing
}

// predictHeldOut asks the model about the samples that on selects.
func predictHeldOut(d *trainingSet, l *linearModel, on func(i int) bool, foreign bool) []heldOutPrediction {
	scores := make([]float32, d.classes+d.families)
	var values []float32
	var trials []heldOutPrediction
	for i := range d.samples {
		if !on(i) {
			continue
		}
		s := &d.samples[i]
		var unknown float32
		values, unknown = weighFeatures(values, l.rarity, l.unseenRarity, s.features, int(s.words), [2]int{})
		l.scoreClasses(scores, s.features, values)
		v := rankScores(scores, d.family, d.families > 0, len(s.features), unknown)
		trials = append(trials, heldOutPrediction{features: v.features, correct: !foreign && v.best == int(s.class), outOfScope: foreign})
	}
	return trials
}
