package lexical

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComputeKeywordGradient_ProbabilityUnderflows checks that a keyword raises the intents of its
// agents equally if the confidence in another intent is so high that their probability is 0.
func TestComputeKeywordGradient_ProbabilityUnderflows(t *testing.T) {
	d := &trainingSet{classes: 3, families: classFamilies{of: []int32{0, 0, 1}, tied: true}}
	f := &sgdTrainer{set: d, model: &linearModel{bias: make([]float32, d.classes)}}
	steps := []float32{0, 1, 100} // scores, replaced by steps
	if !f.computeKeywordGradient(steps, &trainingSample{class: 0, kind: kindKeyword}, 1) {
		t.Error("got no gradient, want one")
	}
	if diff := cmp.Diff([]float32{0.5, 0.5, -1}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
