package lexical

import (
	"cmp"
	"math"
	"slices"

	"github.com/caprouter/caprouter/internal/lexical/feature"
)

// Hyperparameters of the linear model: multinomial logistic regression by
// stochastic gradient descent, with a margin for the correct class, dropout (so
// that the model does not rely on a single word) and averaging over the later
// epochs. A sample with a negligible error is skipped for one epoch. The values
// are not sensitive; they were chosen on the training and validation parts of
// public data sets, and are the same for every corpus.
const (
	maxEpochs      = 6
	smallSetEpochs = 12 // of up to maxSmallSet samples
	minEpochs      = 2
	// maxFullWork is the number of pairs of a sample and a class up to which
	// all epochs run. Larger sets get fewer epochs, because the time would grow
	// with the square of the registry.
	maxFullWork     = 4_000_000
	firstRate       = 3.0  // initial learning rate, falling linearly
	lastRate        = 1.0  // final learning rate
	biasRateShare   = 0.02 // relative to the learning rate
	familyRateShare = 0.35 // relative to the learning rate
	classMargin     = 4.0  // required lead of the correct class, in log odds
	minError        = 0.05 // samples with a smaller error are skipped
	keepShare       = 0.7  // share of the features that dropout keeps
	// dropoutBits is the dropout probability as a fraction of 2^32.
	dropoutBits = 1288490188
	// stopIDF scales the weight of stop words in a small set. Few examples cannot show that
	// a word is frequent in the language.
	stopIDF = 0.7
	// leastCommonIDF scales the weight of common words if no intent has examples. It
	// grows to 1 at commonExamples examples for each intent, and that of common words
	// that the corpus does not contain at unseenCommonExamples.
	leastCommonIDF       = 0.7
	commonExamples       = 5
	leastUnseenCommonIDF = 0.5
	unseenCommonExamples = 25
	// maxFeatureClasses bounds the classes that a feature has weights for. The
	// most frequent ones are kept.
	maxFeatureClasses = 256
)

// fitLinear fits a linear model to the samples for which use returns true.
func fitLinear(d *trainingSet, use func(i int) bool) *linearModel {
	f := &sgdTrainer{set: d, small: len(d.samples) <= maxSmallSet, model: &linearModel{idfWeights: idfWeights{flags: d.flags}, classFamilies: d.families, bias: make([]float32, d.classes)}}
	for i := range d.samples {
		if use(i) {
			f.order = append(f.order, int32(i))
		}
	}
	f.computeIDF(f.selectClasses())
	if f.model.vectorLength = d.vectorLength; f.model.vectorLength > 0 {
		f.model.vector = make(vectorWeights, d.classes)
	}
	f.weighSamples()
	f.shuffleSamples()
	f.runEpochs()
	return f.model
}

type sgdTrainer struct {
	set      *trainingSet
	model    *linearModel
	order    []int32 // samples in training order
	start    []int32 // by sample: index of its first value
	value    []float32
	rngState uint32
	small    bool // at most maxSmallSet samples

	dropped []float32 // scratch buffer of applyDropout
}

// selectClasses chooses the classes and families that each feature has weights
// for: the most frequent ones. A feature that occurs in most classes carries
// little information about each, and would cost more than all others. It returns
// the number of samples with each feature.
func (f *sgdTrainer) selectClasses() (seen []int32) {
	features := f.set.table.Size
	l := f.model
	seen = make([]int32, features)
	firstUse := make([]int32, features+1) // by feature: index of its first class
	f.forEachFeature(func(id int32, _ uint16, first bool) {
		if first {
			firstUse[id+1]++
		}
	})
	for i := range features {
		firstUse[i+1] += firstUse[i]
	}
	type use struct {
		class uint16
		count int32
	}
	uses := make([]use, firstUse[features])
	next := slices.Clone(firstUse[:features])
	f.forEachFeature(func(id int32, class uint16, first bool) {
		if first {
			uses[next[id]].class = class
			next[id]++
		}
		k := next[id] - 1
		for uses[k].class != class { // a family, which precedes its classes
			k--
		}
		uses[k].count++
		if int(class) < f.set.classes {
			seen[id]++
		}
	})
	l.start = make([]int32, features+1)
	l.class = make([]uint16, 0, len(uses))
	for id := range features {
		of := uses[firstUse[id]:firstUse[id+1]]
		if len(of) > maxFeatureClasses {
			slices.SortFunc(of, func(a, b use) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.class, b.class)) })
			of = of[:maxFeatureClasses]
		}
		for _, u := range of {
			l.class = append(l.class, u.class)
		}
		l.start[id+1] = int32(len(l.class))
	}
	l.weight = make([]float32, len(l.class))
	return seen
}

// computeIDF computes the inverse document frequencies from the number of samples with each
// feature.
func (f *sgdTrainer) computeIDF(seen []int32) {
	l := f.model
	n := float64(len(f.order))
	l.unseenIDF = float32(1 + math.Log(n))
	perIntent := float32(f.set.examplesPerIntent())
	common := min(1, leastCommonIDF+(1-leastCommonIDF)*perIntent/commonExamples)
	l.commonIDF = l.unseenIDF * min(1, leastUnseenCommonIDF+(1-leastUnseenCommonIDF)*perIntent/unseenCommonExamples)
	l.idf = make([]float32, len(seen))
	for i, count := range seen {
		if count > 0 {
			l.idf[i] = float32(1 + math.Log(n/float64(count)))
			switch {
			case l.flags[i]&flagStop != 0 && f.small:
				l.idf[i] *= stopIDF
			case l.flags[i]&flagStop == 0 && l.flags[i]&flagCommon != 0:
				l.idf[i] *= common
			}
		}
	}
}

// forEachFeature calls put for each feature of each sample with its class and,
// if there are families, first with its family. first is true if the feature
// occurs in the class for the first time. Samples must be ordered by family and
// class.
func (f *sgdTrainer) forEachFeature(put func(feature int32, class uint16, first bool)) {
	last := make([]int32, f.set.table.Size) // by feature: 1 + the last class
	lastFamily := make([]int32, f.set.table.Size)
	for _, i := range f.order {
		s := &f.set.samples[i]
		for _, id := range s.features {
			if f.set.families.count > 0 {
				g := f.set.families.of[s.class]
				put(id, uint16(f.set.classes+int(g)), lastFamily[id] != g+1)
				lastFamily[id] = g + 1
			}
			put(id, uint16(s.class), last[id] != s.class+1)
			last[id] = s.class + 1
		}
	}
}

// shuffleSamples orders the samples randomly, with a fixed seed. A small set is
// ordered by a hash of each text, so that one more sample does not change the
// order of the others.
func (f *sgdTrainer) shuffleSamples() {
	if f.small {
		slices.SortFunc(f.order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(f.set.samples[a].key, f.set.samples[b].key), cmp.Compare(a, b))
		})
		return
	}
	f.rngState = 12345
	for i := len(f.order) - 1; i > 0; i-- {
		j := f.nextRandom() % uint32(i+1)
		f.order[i], f.order[j] = f.order[j], f.order[i]
	}
}

// nextRandom is a xorshift generator (Marsaglia).
func (f *sgdTrainer) nextRandom() uint32 {
	f.rngState ^= f.rngState << 13
	f.rngState ^= f.rngState >> 17
	f.rngState ^= f.rngState << 5
	return f.rngState
}

// weighSamples computes the feature values of every sample.
func (f *sgdTrainer) weighSamples() {
	f.start = make([]int32, len(f.set.samples))
	var buffer []float32
	for _, i := range f.order {
		s := &f.set.samples[i]
		buffer, _ = f.model.weighText(buffer, s.features, int(s.words), unknownCount{})
		f.start[i] = int32(len(f.value))
		f.value = append(f.value, buffer...)
	}
}

// runEpochs runs stochastic gradient descent.
func (f *sgdTrainer) runEpochs() {
	d := f.set
	epochs := maxEpochs
	if f.small {
		epochs = smallSetEpochs
	}
	epochs = max(minEpochs, min(epochs, maxEpochs*maxFullWork/max(1, len(f.order)*d.classes)))
	averageFrom := epochs / 2 // average the models from here on
	scores := make([]float32, d.classes+d.families.count)
	skip := make([]bool, len(d.samples)) // by sample: skip it in the next epoch
	sum := make([]float32, len(f.model.weight))
	vectorSum := make(vectorWeights, len(f.model.vector))
	total := float32(epochs * len(f.order))
	step, reported := float32(0), 0
	for epoch := range epochs {
		for _, i := range f.order {
			rate := firstRate + (lastRate-firstRate)*step/total
			step++
			if hundredths := int(100 * step / total); hundredths > reported {
				d.progress.addSteps(hundredths - reported)
				reported = hundredths
			}
			if skip[i] {
				skip[i] = false
				continue
			}
			if !d.yield() {
				return
			}
			s := &d.samples[i]
			if f.small { // the same words are dropped, whatever the other samples are
				f.rngState = feature.Combine(s.key, uint32(epoch)) | 1
			}
			values := f.applyDropout(i)
			f.model.scoreClasses(scores, s.features, values)
			f.model.vector.addScores(scores, s.vector)
			if skip[i] = !f.computeGradient(scores, s, rate); !skip[i] {
				f.applyGradient(scores, s, values)
				f.model.vector.applySteps(scores, s.vector)
			}
		}
		if epoch >= averageFrom {
			for k, w := range f.model.weight {
				sum[k] += w
			}
			for c := range vectorSum {
				for k, w := range f.model.vector[c] {
					vectorSum[c][k] += w
				}
			}
		}
	}
	for k, w := range sum {
		f.model.weight[k] = w / float32(epochs-averageFrom)
	}
	for c := range vectorSum {
		for k, w := range vectorSum[c] {
			f.model.vector[c][k] = w / float32(epochs-averageFrom)
		}
	}
}

// applyDropout returns the values of a sample with some set to 0 at random and
// the others scaled up.
func (f *sgdTrainer) applyDropout(i int32) []float32 {
	from := int(f.start[i])
	f.dropped = append(f.dropped[:0], f.value[from:from+len(f.set.samples[i].features)]...)
	for k := range f.dropped {
		if f.nextRandom() < dropoutBits {
			f.dropped[k] = 0
		} else {
			f.dropped[k] /= keepShare
		}
	}
	return f.dropped
}

// computeGradient turns the scores into gradient steps, and reports whether
// there are any.
func (f *sgdTrainer) computeGradient(scores []float32, s *trainingSample, rate float32) bool {
	classes := f.set.classes
	if s.kind == kindNotFor {
		softmax(scores[:classes])
		step := -rate * scores[s.class]
		clear(scores)
		scores[s.class] = step
		return step < -rate*minError
	}
	if s.kind == kindKeyword && f.set.families.tied {
		return f.computeKeywordGradient(scores, s, rate)
	}
	scores[s.class] -= classMargin
	softmax(scores[:classes])
	if 1-scores[s.class] < minError {
		return false
	}
	scores[s.class]--
	f.scaleSteps(scores, rate)
	return true
}

// computeKeywordGradient does the same for a keyword. It is one for all intents of its
// agents, so the correct class is any of their family, and none of them is preferred.
func (f *sgdTrainer) computeKeywordGradient(scores []float32, s *trainingSample, rate float32) bool {
	classes, of := f.set.classes, f.set.families.of
	for c := range classes {
		if of[c] == of[s.class] {
			scores[c] -= classMargin
		}
	}
	softmax(scores[:classes])
	family, members := float32(0), float32(0)
	for c := range classes {
		if of[c] == of[s.class] {
			family += scores[c]
			members++
		}
	}
	if 1-family < minError {
		return false
	}
	for c := range classes {
		switch {
		case of[c] != of[s.class]:
		case family > 0:
			scores[c] -= scores[c] / family
		default: // fastExp returns 0 for improbable classes
			scores[c] = -1 / members
		}
	}
	f.scaleSteps(scores, rate)
	return true
}

// scaleSteps turns the errors of the classes into steps of their weights, of their
// bias and of the families.
func (f *sgdTrainer) scaleSteps(scores []float32, rate float32) {
	steps, families := scores[:f.set.classes], scores[f.set.classes:]
	clear(families)
	bias := f.model.bias[:len(steps)]
	for c, s := range steps {
		step := -rate * s
		steps[c] = step
		bias[c] += biasRateShare * step
	}
	if len(families) > 0 {
		for c, step := range steps {
			families[f.set.families.of[c]] += familyRateShare * step
		}
	}
}

// applyGradient adds the steps to the weights of the sample's features.
func (f *sgdTrainer) applyGradient(steps []float32, s *trainingSample, values []float32) {
	l := f.model
	for k, id := range s.features {
		v := values[k]
		if v == 0 {
			continue
		}
		from, to := l.start[id], l.start[id+1]
		classes := l.class[from:to]
		weights := l.weight[from:to][:len(classes)]
		for j, c := range classes {
			weights[j] += v * steps[c]
		}
	}
}
