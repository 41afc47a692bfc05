package lexical

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"github.com/caprouter/caprouter/internal/run"
)

// A trial is what a model said about an example it had not seen.
type trial struct {
	signs   signs
	right   bool
	foreign bool // the example's intent had been kept from the model: whatever it says is wrong
}

const (
	// folds is how many parts the examples are cut into.
	folds = 3
	// leftOut is one in how many intents another fold does without, of which
	// quarter says which; leastClasses are needed for that.
	leftOut      = 4
	quarter      = 2
	leastClasses = 3
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
func crossFit(d *dataset) (*linear, []trial) {
	var whole *linear
	parts := make([][]trial, folds+1)
	run.ForEach(context.Background(), runtime.GOMAXPROCS(0), folds+2, func(_ context.Context, i int) {
		switch {
		case i == 0:
			whole = fit(d, func(int) bool { return true })
		case i <= folds:
			parts[i-1] = tryFold(d, i-1)
		default:
			parts[i-1] = tryForeign(d)
		}
	})
	return whole, slices.Concat(parts...)
}

// tryFold tries a model on the examples of a fold, which were held back from it.
func tryFold(d *dataset, fold int) []trial {
	heldBack := func(i int) bool { return i%folds == fold && !d.samples[i].declared }
	l := fit(d, func(i int) bool { return !heldBack(i) })
	return try(d, l, heldBack, false)
}

// tryForeign tries a model on the examples of intents it does not have.
func tryForeign(d *dataset) []trial {
	if d.classes < leastClasses {
		return nil
	}
	missing := d.missing()
	l := fit(d, func(i int) bool { return !missing[d.samples[i].class] })
	return try(d, l, func(i int) bool { return missing[d.samples[i].class] && !d.samples[i].declared }, true)
}

// missing chooses the classes to leave out.
func (d *dataset) missing() []bool {
	order := make([]int, d.classes)
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.group[a], d.group[b]) })
	missing := make([]bool, d.classes)
	for place, c := range order {
		missing[c] = place*leftOut/d.classes == quarter
	}
	return missing
}

// try asks the model about the samples that on selects.
func try(d *dataset, l *linear, on func(i int) bool, foreign bool) []trial {
	scores := make([]float32, d.classes+d.groups)
	var values []float32
	var trials []trial
	for i := range d.samples {
		if !on(i) {
			continue
		}
		s := &d.samples[i]
		var unknown float32
		values, unknown = vector(values, l.rarity, l.rarest, s.features, int(s.words), [2]int{})
		l.score(scores, s.features, values)
		v := judge(scores, d.group, d.groups > 0, len(s.features), unknown)
		trials = append(trials, trial{signs: v.signs, right: !foreign && v.best == int(s.class), foreign: foreign})
	}
	return trials
}
