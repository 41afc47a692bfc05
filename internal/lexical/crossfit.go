package lexical

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"github.com/caprouter/caprouter/internal/run"
)

// heldOutPrediction is the prediction of a model for an example it was not
// trained on.
type heldOutPrediction struct {
	features   confidenceFeatures
	class      int32 // of the example
	best       int32 // predicted
	correct    bool
	outOfScope bool // the intent of the example was excluded from training, so any prediction is wrong
}

const (
	// foldCount is the number of cross-fitting folds.
	foldCount = 3
	// The out-of-scope model is trained without one in excludedShare intents;
	// excludedPart selects which. At least minClasses are required.
	excludedShare = 4
	excludedPart  = 2
	minClasses    = 3
)

// crossFit fits the model of the whole corpus, and others whose predictions are
// measured on examples they were not trained on. Each fold holds out a part of
// every intent's examples: requests as the registry expects them. One more
// model is trained without some intents, whose examples serve as out-of-scope
// requests. Adjacent intents of the same family are excluded together, because
// out-of-scope requests usually belong to another field.
//
// A fold is trained on fewer examples than the whole model, which makes its
// predictions slightly worse than in production. They are also slightly better,
// because examples of a registry are more alike than requests. On public data
// sets the two effects cancel within two points, so neither is corrected.
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

// predictFold predicts the examples of one fold with a model that is trained on
// the others.
func predictFold(d *trainingSet, fold int) []heldOutPrediction {
	heldBack := func(i int) bool { return i%foldCount == fold && !d.samples[i].fitOnly }
	l := fitLinear(d, func(i int) bool { return !heldBack(i) })
	return predictHeldOut(d, l, heldBack, false)
}

// predictOutOfScope predicts the examples of excluded intents.
func predictOutOfScope(d *trainingSet) []heldOutPrediction {
	if d.classes < minClasses {
		return nil
	}
	missing := d.excludedIntents()
	l := fitLinear(d, func(i int) bool { return !missing[d.samples[i].class] })
	return predictHeldOut(d, l, func(i int) bool { return missing[d.samples[i].class] && !d.samples[i].fitOnly }, true)
}

// excludedIntents chooses the classes to exclude.
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

// predictHeldOut predicts the samples for which on returns true.
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
		trials = append(trials, heldOutPrediction{features: v.features, class: s.class, best: int32(v.best), correct: !foreign && v.best == int(s.class), outOfScope: foreign})
	}
	return trials
}
