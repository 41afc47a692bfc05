package lexical

import "math"

// confidenceFeatures are the inputs of the confidence model: properties of a
// prediction that correlate with its being correct.
type confidenceFeatures [featCount]float64

const (
	featConstant       = iota // 1, for the constant term
	featLogOdds               // log odds of the best class
	featMargin                // best score minus second best
	featScore                 // the best score
	featEntropy               // of the probabilities, 1 if they are all equal
	featUnknown               // share of the words, by weight, that the corpus does not contain
	featLength                // log of the number of features
	featFamily                // score that the family of the best class adds
	featUnknownSquared        // the square of featUnknown: a foreign language is worse than a few unknown words
	featCount
)

// maxLogOdds bounds the log odds, which are otherwise unbounded.
const maxLogOdds = 12

// scoredClass is the best class of a text and the inputs of its confidence.
type scoredClass struct {
	best     int
	features confidenceFeatures
}

// rankScores finds the best class, and turns the scores of the classes into
// probabilities in place.
func rankScores(scores []float32, group []int32, grouped bool, features int, unknown float32) scoredClass {
	classes := scores[:len(group)]
	best := 0
	for c, s := range classes {
		if s > classes[best] {
			best = c
		}
	}
	top, second := classes[best], float32(math.Inf(-1))
	for c, s := range classes {
		if c != best {
			second = max(second, s)
		}
	}
	softmax(classes)
	entropy, rest := 0.0, 0.0 // rest is 1 - p(best), summed to avoid rounding
	for c, p := range classes {
		if p > 1e-6 {
			entropy -= float64(p) * math.Log(float64(p))
		}
		if c != best {
			rest += float64(p)
		}
	}
	v := scoredClass{best: best}
	v.features[featConstant] = 1
	v.features[featLogOdds] = min(math.Log(float64(classes[best])/max(rest, 1e-9)), maxLogOdds)
	if len(classes) > 1 {
		v.features[featMargin] = float64(top - second)
		v.features[featEntropy] = entropy / math.Log(float64(len(classes)))
	}
	v.features[featScore] = float64(top)
	v.features[featUnknown] = float64(unknown)
	if grouped {
		v.features[featFamily] = float64(scores[len(group)+int(group[best])])
	}
	v.features[featUnknownSquared] = float64(unknown * unknown)
	v.features[featLength] = math.Log1p(float64(features))
	return v
}
