package lexical

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFitIsotonic checks that the curve rises, stays within bounds and follows the points.
func TestFitIsotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "points")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		stretch := rapid.Float64Range(-2, 3).Draw(t, "stretch")
		points := make([]labelledOdds, n)
		for i := range points {
			odds := random.NormFloat64() * 3
			points[i] = labelledOdds{odds, random.Float64() < sigmoid(stretch*odds)}
		}
		c := confidenceCalibration{knots: fitIsotonic(points, plattCurve{stretch: 1}, corpusSize{examples: math.Log1p(100)})}
		last := 0.0
		for odds := -20.0; odds < 20; odds += 0.25 {
			p := c.interpolate(odds)
			if p < last || p > 1 || math.IsNaN(p) {
				t.Fatalf("got %v at %v behind %v, want a rising probability", p, odds, last)
			}
			last = p
		}
	})
}

// TestFitIsotonic_ApproximatesProbability checks that the curve approximates the probability from
// which many points were drawn.
func TestFitIsotonic_ApproximatesProbability(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	truth := func(odds float64) float64 { return 0.1 + 0.85*sigmoid(2*odds-1) }
	points := make([]labelledOdds, 20_000)
	for i := range points {
		odds := random.NormFloat64() * 2
		points[i] = labelledOdds{odds, random.Float64() < truth(odds)}
	}
	c := confidenceCalibration{knots: fitIsotonic(points, plattCurve{stretch: 1}, corpusSize{examples: math.Log1p(100)})}
	for odds := -3.0; odds <= 3; odds += 0.5 {
		if got, want := c.interpolate(odds), truth(odds); math.Abs(got-want) > 0.05 {
			t.Errorf("at %v: got %v, want about %v", odds, got, want)
		}
	}
}

// TestLogistic checks that the regression finds the informative feature and
// ignores a constant one.
func TestLogistic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	trials := make([]heldOutPrediction, 2000)
	for i := range trials {
		s := &trials[i].features
		s[featConstant], s[featScore], s[featMargin] = 1, random.NormFloat64()*5+10, random.NormFloat64()
		trials[i].correct = random.Float64() < sigmoid(s[featScore]-10)
	}
	var mean, precision confidenceFeatures
	for a := range precision {
		precision[a] = 1
	}
	mean[featEntropy] = 0.5
	weight := fitLogistic(trials, func(*heldOutPrediction) float64 { return 1 }, &mean, &precision)
	if w := weight[featScore]; w < 0.8 || w > 1.2 {
		t.Errorf("got weight %v of the informative feature, want about 1", w)
	}
	if w := weight[featMargin]; math.Abs(w) > 0.5 {
		t.Errorf("got weight %v of the uninformative feature, want about 0", w)
	}
	if w := weight[featEntropy]; math.Abs(w-0.5) > 1e-6 {
		t.Errorf("got weight %v of one that never changes, want that of the prior", w)
	}
	for a := range precision {
		precision[a] = 1e7
	}
	if w := fitLogistic(trials, func(*heldOutPrediction) float64 { return 1 }, &mean, &precision)[featScore]; math.Abs(w) > 0.05 {
		t.Errorf("got weight %v with a strong prior, want about 0", w)
	}
}

// TestChooseThresholds checks that the reject threshold excludes few correct answers, and that
// accepted answers have the target precision.
func TestChooseThresholds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var trials []heldOutPrediction
	for range 5000 {
		var tr heldOutPrediction
		tr.features[featConstant] = 1
		tr.outOfScope = random.IntN(4) == 0
		tr.features[featScore] = random.NormFloat64()*3 + 2
		if tr.outOfScope {
			tr.features[featScore] -= 4
		}
		tr.correct = !tr.outOfScope && random.Float64() < sigmoid(tr.features[featScore])
		trials = append(trials, tr)
	}
	size := corpusSize{examples: math.Log1p(100), classes: math.Log(10)}
	c := fitCalibration(trials, size)
	reject, accept := chooseThresholds(&c, trials, size)
	var right, lost, correct, accepted float64
	for i := range trials {
		confidence := c.confidence(&trials[i].features)
		if trials[i].correct {
			right++
			if roundConfidence(confidence) < reject {
				lost++
			}
		}
		if roundConfidence(confidence) >= accept && !trials[i].outOfScope {
			accepted++
			if trials[i].correct {
				correct++
			}
		}
	}
	if lost > 2*minLostShare*right {
		t.Errorf("got %v of %v right answers lost, want at most %v", lost, right, 2*minLostShare)
	}
	if accept < reject || accepted < minAccepted || correct < targetPrecision*accepted {
		t.Errorf("got %v right of %v accepted from %v (rejected below %v), want %v", correct, accepted, accept, reject, targetPrecision)
	}

	for i := range trials { // no answer is correct
		trials[i].correct = false
	}
	if _, accept := chooseThresholds(&c, trials, size); !math.IsInf(accept, 1) {
		t.Errorf("got %v to accept where nothing is right, want none", accept)
	}
}

// TestCrossFit checks that every example is predicted once in scope, those of excluded intents once
// more and never correctly, and names never.
func TestCrossFit(t *testing.T) {
	docs := mergeIntents(trainedCorpus().Intents)
	families := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, families.of), families)
	declared := newDeclaredTexts(d)
	_, trials, _ := crossFit(d, &declared)
	examples := 0
	for _, s := range d.samples {
		if s.kind == kindExample {
			examples++
		}
	}
	outOfScope := 0
	for _, tr := range trials {
		if tr.outOfScope {
			outOfScope++
			if tr.correct {
				t.Error("got a right answer about an intent that was left out")
			}
		}
	}
	if len(trials)-outOfScope != examples || outOfScope != examples {
		t.Errorf("got %d trials in scope and %d out of it, want %d of each", len(trials)-outOfScope, outOfScope, examples)
	}
	missing := d.excludedIntents(excludedPart)
	if n := len(slices.DeleteFunc(missing, func(m bool) bool { return !m })); n == 0 || n > len(docs)/2 {
		t.Errorf("got %d of %d intents left out, want some, not most", n, len(docs))
	}
}

// TestFastExp checks that the fast exponential is close to the exact one.
func TestFastExp(t *testing.T) {
	for x := float32(-19.9); x <= 0; x += 0.01 {
		if got, want := float64(fastExp(x)), math.Exp(float64(x)); math.Abs(got-want) > 3e-4*want {
			t.Errorf("e^%v: got %v, want %v", x, got, want)
		}
	}
	if got := fastExp(-1000); got != 0 {
		t.Errorf("e^-1000: got %v, want 0", got)
	}
}

// TestQuantize checks that a quantized model scores like the original.
func TestQuantize(t *testing.T) {
	docs := mergeIntents(trainedCorpus().Intents)
	families := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, families.of), families)
	l := fitLinear(d, func(int) bool { return true })
	c := l.quantize(d.table)
	c.prepare()
	want := make([]float32, d.classes+families.count)
	got, sums := newClassScores(d.classes, families.count), make([]int32, len(want))
	for i := range d.samples {
		s := &d.samples[i]
		values, _ := l.weighText(nil, s.features, int(s.words), unknownCount{})
		l.scoreClasses(want, s.features, values)
		c.scoreClasses(&got, sums, s.features, values)
		for class := range d.classes {
			if off := math.Abs(float64(got.values[class] - want[class])); off > 0.6 {
				t.Fatalf("sample %d, class %d: got score %v, want about %v", i, class, got.values[class], want[class])
			}
		}
	}
	if len(c.weight) > len(l.weight) || c.sizeBytes() >= 6*len(l.weight)+20*len(l.idf)+8*len(c.features.slots) {
		t.Errorf("got %d weights in %d bytes of %d weights, want fewer and smaller", len(c.weight), c.sizeBytes(), len(l.weight))
	}
}

func TestFastLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(1e-7, 1).Draw(t, "x")
		if got, want := fastLog(x), math.Log(float64(x)); math.Abs(got-want) > 1e-9 {
			t.Errorf("log %v: got %v, want %v", x, got, want)
		}
	})
}

// An intent of the right agent counts as right for the agent.
func TestNewReport_CountsRightAgents(t *testing.T) {
	docs := []IntentDoc{{Name: "cancel", Agents: []string{"orders"}}, {Name: "pay", Agents: []string{"money"}}, {Name: "track", Agents: []string{"orders", "parcels"}}}
	trials := []heldOutPrediction{
		{class: 0, best: 0, correct: true}, {class: 0, best: 2}, {class: 1, best: 2}, {class: 2, best: 0}, {class: 1, best: 0, outOfScope: true},
	}
	if r := newReport(docs, trials); r.Accuracy != 0.25 || r.AgentAccuracy != 0.75 {
		t.Errorf("got the accuracy %v and by agent %v of %d predictions, want 0.25 and 0.75 of 4", r.Accuracy, r.AgentAccuracy, r.Trials)
	}
}
