package lexical

import (
	"cmp"
	"math"
	"slices"
)

// How a linear model is fitted: multinomial logistic regression by stochastic
// gradient descent, with a margin the right class must have, with features left
// out by chance (dropout: no word is always there to rely on), and with the mean
// of the later models for the last one. An example that taught nothing rests for
// an epoch. The values are not delicate; they were found on the training
// and validation parts of public sets, and are the same for every corpus.
const (
	mostEpochs  = 6
	leastEpochs = 2
	// wholeWork is up to how many pairs of an example and an intent there are
	// that many epochs: beyond, time would grow with the square of a registry.
	wholeWork = 4_000_000
	firstRate = 3.0  // the step, falling
	lastRate  = 1.0  // to this
	biasRate  = 0.02 // of the step
	groupRate = 0.35 // of the step
	margin    = 4.0  // what a class must be ahead by, in log odds
	learned   = 0.05 // a doubt below which an example teaches nothing
	kept      = 0.7  // of an example's features, by chance, at each step
	// leftOutBits is the chance of the others, of 2^32.
	leftOutBits = 1288490188
	// mostUses is how many classes a feature has weights for at most: those it is
	// seen in most.
	mostUses = 256
)

// fit learns a linear model from the samples that use selects.
func fit(d *dataset, use func(i int) bool) *linear {
	f := &fitter{d: d, l: &linear{group: d.group, groups: d.groups, bias: make([]float32, d.classes)}}
	for i := range d.samples {
		if use(i) {
			f.order = append(f.order, int32(i))
		}
	}
	f.support()
	f.vectors()
	f.shuffle()
	f.descend()
	return f.l
}

type fitter struct {
	d     *dataset
	l     *linear
	order []int32 // the samples, in the order they are learned from
	start []int32 // by place in order: where its values begin
	value []float32
	noise uint32

	buffer []float32 // of some
}

// support finds out which classes and groups each feature is to have weights for:
// those it is seen in most, for a feature that is in most classes tells little
// about each and would cost more than all others.
func (f *fitter) support() {
	features := f.d.table.size
	l := f.l
	seen := make([]int32, features)
	places := make([]int32, features+1) // where the classes of a feature begin
	f.eachClass(func(id int32, _ uint16, first bool) {
		if first {
			places[id+1]++
		}
	})
	for i := range features {
		places[i+1] += places[i]
	}
	type use struct {
		class uint16
		count int32
	}
	uses := make([]use, places[features])
	next := slices.Clone(places[:features])
	f.eachClass(func(id int32, class uint16, first bool) {
		if first {
			uses[next[id]].class = class
			next[id]++
		}
		k := next[id] - 1
		for uses[k].class != class { // a group, entered before its classes
			k--
		}
		uses[k].count++
		if int(class) < f.d.classes {
			seen[id]++
		}
	})
	l.start = make([]int32, features+1)
	l.class = make([]uint16, 0, len(uses))
	for id := range features {
		of := uses[places[id]:places[id+1]]
		if len(of) > mostUses {
			slices.SortFunc(of, func(a, b use) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.class, b.class)) })
			of = of[:mostUses]
		}
		for _, u := range of {
			l.class = append(l.class, u.class)
		}
		l.start[id+1] = int32(len(l.class))
	}
	l.weight = make([]float32, len(l.class))
	n := float64(len(f.order))
	l.rarest = float32(1 + math.Log(n))
	l.rarity = make([]float32, features)
	for i, count := range seen {
		if count > 0 {
			l.rarity[i] = float32(1 + math.Log(n/float64(count)))
		}
	}
}

// eachClass calls put for each feature of each sample with its class and, if
// there are groups, before that with its group; first tells that the feature has
// not been seen with it. Samples stand by group and class.
func (f *fitter) eachClass(put func(feature int32, class uint16, first bool)) {
	last := make([]int32, f.d.table.size) // 1 + the class
	lastGroup := make([]int32, f.d.table.size)
	for _, i := range f.order {
		s := &f.d.samples[i]
		for _, id := range s.features {
			if f.d.groups > 0 {
				g := f.d.group[s.class]
				put(id, uint16(f.d.classes+int(g)), lastGroup[id] != g+1)
				lastGroup[id] = g + 1
			}
			put(id, uint16(s.class), last[id] != s.class+1)
			last[id] = s.class + 1
		}
	}
}

// shuffle orders the samples as a seeded generator says.
func (f *fitter) shuffle() {
	f.noise = 12345
	for i := len(f.order) - 1; i > 0; i-- {
		j := f.random() % uint32(i+1)
		f.order[i], f.order[j] = f.order[j], f.order[i]
	}
}

// random is Marsaglia's xorshift.
func (f *fitter) random() uint32 {
	f.noise ^= f.noise << 13
	f.noise ^= f.noise >> 17
	f.noise ^= f.noise << 5
	return f.noise
}

// vectors weighs the features of every sample once and for all.
func (f *fitter) vectors() {
	f.start = make([]int32, len(f.d.samples))
	var buffer []float32
	for _, i := range f.order {
		s := &f.d.samples[i]
		buffer, _ = vector(buffer, f.l.rarity, f.l.rarest, s.features, int(s.words), [2]int{})
		f.start[i] = int32(len(f.value))
		f.value = append(f.value, buffer...)
	}
}

// descend goes through the samples, epoch by epoch.
func (f *fitter) descend() {
	d := f.d
	epochs := max(leastEpochs, min(mostEpochs, mostEpochs*wholeWork/max(1, len(f.order)*d.classes)))
	settled := epochs / 2 // the model is the mean of those of the second half
	scores := make([]float32, d.classes+d.groups)
	rests := make([]bool, len(d.samples)) // it taught nothing the last time
	sum := make([]float32, len(f.l.weight))
	total := float32(epochs * len(f.order))
	step := float32(0)
	for epoch := range epochs {
		for _, i := range f.order {
			rate := firstRate + (lastRate-firstRate)*step/total
			step++
			if rests[i] {
				rests[i] = false
				continue
			}
			s := &d.samples[i]
			values := f.some(i)
			f.l.score(scores, s.features, values)
			if rests[i] = !f.gradient(scores, s, rate); !rests[i] {
				f.update(scores, s, values)
			}
		}
		if epoch >= settled {
			for k, w := range f.l.weight {
				sum[k] += w
			}
		}
	}
	for k, w := range sum {
		f.l.weight[k] = w / float32(epochs-settled)
	}
}

// some are the values of a sample with some left out by chance, and the others
// raised in turn.
func (f *fitter) some(i int32) []float32 {
	from := int(f.start[i])
	f.buffer = append(f.buffer[:0], f.value[from:from+len(f.d.samples[i].features)]...)
	for k := range f.buffer {
		if f.random() < leftOutBits {
			f.buffer[k] = 0
		} else {
			f.buffer[k] /= kept
		}
	}
	return f.buffer
}

// gradient turns the scores into the steps to take, and reports whether there is
// any.
func (f *fitter) gradient(scores []float32, s *sample, rate float32) bool {
	classes := f.d.classes
	if s.against {
		softmax(scores[:classes])
		step := -rate * scores[s.class]
		clear(scores)
		scores[s.class] = step
		return step < -rate*learned
	}
	scores[s.class] -= margin
	softmax(scores[:classes])
	if 1-scores[s.class] < learned {
		return false
	}
	scores[s.class]--
	clear(scores[classes:])
	for c := range classes {
		if scores[c] == 0 {
			continue
		}
		step := -rate * scores[c]
		scores[c] = step
		f.l.bias[c] += biasRate * step
		if f.d.groups > 0 {
			scores[classes+int(f.d.group[c])] += groupRate * step
		}
	}
	return true
}

// update takes the steps, each feature as far as it is there.
func (f *fitter) update(steps []float32, s *sample, values []float32) {
	l := f.l
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
