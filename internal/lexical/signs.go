package lexical

import "math"

// signs is what can be seen of a prediction that tells how far to trust it.
type signs [signCount]float64

const (
	signOne     = iota // 1, for the constant term
	signOdds           // log odds of the best class among the classes
	signMargin         // how far the best score is ahead of the second
	signScore          // the best score
	signEntropy        // of the probabilities, 1 when all are the same
	signUnknown        // share of the words, by weight, that are not in the corpus
	signLength         // log of the number of features
	signGroup          // what the family of the best class adds to its score
	signStrange        // the square of signUnknown: a foreign language is worse than a few foreign words
	signCount
)

// mostOdds bounds the log odds, which have no bound.
const mostOdds = 12

// verdict is what a linear model makes of a text.
type verdict struct {
	best  int
	signs signs
}

// judge turns the scores of classes and groups into a verdict, and those of the
// classes into probabilities, in place.
func judge(scores []float32, group []int32, grouped bool, features int, unknown float32) verdict {
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
	entropy, rest := 0.0, 0.0 // rest is 1 - p(best), without the rounding
	for c, p := range classes {
		if p > 1e-6 {
			entropy -= float64(p) * math.Log(float64(p))
		}
		if c != best {
			rest += float64(p)
		}
	}
	v := verdict{best: best}
	v.signs[signOne] = 1
	v.signs[signOdds] = min(math.Log(float64(classes[best])/max(rest, 1e-9)), mostOdds)
	if len(classes) > 1 {
		v.signs[signMargin] = float64(top - second)
		v.signs[signEntropy] = entropy / math.Log(float64(len(classes)))
	}
	v.signs[signScore] = float64(top)
	v.signs[signUnknown] = float64(unknown)
	if grouped {
		v.signs[signGroup] = float64(scores[len(group)+int(group[best])])
	}
	v.signs[signStrange] = float64(unknown * unknown)
	v.signs[signLength] = math.Log1p(float64(features))
	return v
}
