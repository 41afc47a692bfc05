package lexical

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/caprouter/caprouter/internal/lexical/calibration"
)

// TestChooseThresholds checks that the reject threshold excludes few correct answers, and that
// accepted answers have the target precision.
func TestChooseThresholds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var trials []calibration.Trial
	for range 5000 {
		var tr calibration.Trial
		tr.Features[calibration.Constant] = 1
		tr.OutOfScope = random.IntN(4) == 0
		tr.Features[calibration.Score] = random.NormFloat64()*3 + 2
		if tr.OutOfScope {
			tr.Features[calibration.Score] -= 4
		}
		tr.Correct = !tr.OutOfScope && random.Float64() < 1/(1+math.Exp(-tr.Features[calibration.Score]))
		trials = append(trials, tr)
	}
	size := calibration.CorpusSize{Examples: math.Log1p(100), Classes: math.Log(10)}
	c := calibration.Fit(trials, size)
	reject, accept := chooseThresholds(&c, trials, size)
	var right, lost, correct, accepted float64
	for i := range trials {
		confidence := c.Confidence(&trials[i].Features)
		if trials[i].Correct {
			right++
			if roundConfidence(confidence) < reject {
				lost++
			}
		}
		if roundConfidence(confidence) >= accept && !trials[i].OutOfScope {
			accepted++
			if trials[i].Correct {
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
		trials[i].Correct = false
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
		if tr.OutOfScope {
			outOfScope++
			if tr.Correct {
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

// An intent of the right agent counts as right for the agent.
func TestNewReport_CountsRightAgents(t *testing.T) {
	docs := []IntentDoc{{Name: "cancel", Agents: []string{"orders"}}, {Name: "pay", Agents: []string{"money"}}, {Name: "track", Agents: []string{"orders", "parcels"}}}
	trials := []heldOutPrediction{
		{class: 0, best: 0, Trial: calibration.Trial{Correct: true}}, {class: 0, best: 2}, {class: 1, best: 2}, {class: 2, best: 0}, {class: 1, best: 0, Trial: calibration.Trial{OutOfScope: true}},
	}
	if r := newReport(docs, trials); r.Accuracy != 0.25 || r.AgentAccuracy != 0.75 {
		t.Errorf("got the accuracy %v and by agent %v of %d predictions, want 0.25 and 0.75 of 4", r.Accuracy, r.AgentAccuracy, r.Trials)
	}
}
