package classifier

import (
	"math"

	"github.com/caprouter/caprouter/contract"
)

// cascade says whether the lexical classification is sure enough to spare the
// model.
func (c *Classifier) cascade(in *Input, byWords *contract.Classification) *contract.Cascade {
	accept := c.acceptOf(in)
	k := &contract.Cascade{
		Intent: byWords.Intent, Confidence: byWords.Confidence,
		ModelSkipped: byWords.Intent != contract.Unknown && byWords.Confidence >= accept,
	}
	if !math.IsInf(accept, 1) {
		k.Accept = &accept
	}
	return k
}

// acceptOf is the confidence from which the model is spared: a number of the
// configuration, or what the calibration of the lexical model came to.
func (c *Classifier) acceptOf(in *Input) float64 {
	if c.acceptAuto {
		return in.Lexical.AcceptThreshold()
	}
	return c.accept
}

// withCascade notes in a classification of the model's whether it agrees with
// the lexical one; k is nil in other modes.
func withCascade(clf contract.Classification, k *contract.Cascade) contract.Classification {
	if k == nil {
		return clf
	}
	agrees := clf.Intent == k.Intent
	k.Agrees = &agrees
	clf.Cascade = k
	return clf
}
