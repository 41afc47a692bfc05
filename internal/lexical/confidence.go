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
	featUnknownContent        // cube of the unknown share of the content words: one in another language
	featStop                  // share of the words, by weight, that are stop words
	featDomain                // share of the words, by weight, that are part of domain names
	featNearest               // cosine to the nearest example of the best class, over words
	featName                  // share of the name of the best class that the text contains
	featKeyword               // 1 if the text contains a keyword of its agents that no others declare
	featShared                // log of the number of features shared with the nearest text of the class
	featCount
)

const (
	// maxLogOdds bounds the log odds, which are otherwise unbounded.
	maxLogOdds = 12
	// tieMargin is the distance to the best score up to which an intent of the
	// same agents is tied with the best.
	tieMargin = 0.5
	tieRatio  = 0.60653066 // e to the -tieMargin
)

// scoredClass is the best class of a text and the inputs of its confidence.
type scoredClass struct {
	best     int
	features confidenceFeatures
	// If classes of the same agents are tied with the best, the text asks for
	// the agents and leaves open what for. tiedShare is the share of the best
	// one in their probability, 1 without a tie, and tied are the features that
	// differ for all of them together.
	tiedShare float64
	tied      tiedFeatures
	wide      bool // all classes of the family are tied, not only near ones
	equal     bool // and they are equally likely
}

// tiedFeatures are the features of tied classes as one.
type tiedFeatures struct{ logOdds, margin float64 }

// withTies returns the features of the tied classes as one class.
func (v *scoredClass) withTies() confidenceFeatures {
	f := v.features
	f[featLogOdds], f[featMargin] = v.tied.logOdds, v.tied.margin
	return f
}

// widenTie ties all classes of the family of the best, whatever their scores: a keyword
// of the agents speaks for all of their intents.
func (v *scoredClass) widenTie(x *classScores, families *classFamilies) {
	whole, outside := 0.0, float32(0)
	for _, c := range x.candidates {
		if p := x.values[c]; families.tie(int(c), v.best) {
			whole += float64(p)
		} else {
			outside = max(outside, p)
		}
	}
	p := float64(x.values[v.best])
	v.tiedShare = p / whole
	v.tied = tiedFeatures{min(math.Log(whole/max(1-whole, 1e-9)), maxLogOdds), math.Log(p / max(float64(outside), 1e-9))}
	v.wide = true
}

// equalizeTie makes the classes of a wide tie equally likely.
func (v *scoredClass) equalizeTie(x *classScores, families *classFamilies) {
	members := families.membersWith(v.best)
	each := float32(float64(x.values[v.best]) / v.tiedShare / float64(len(members)))
	for _, c := range members {
		x.values[c] = each
	}
	v.equal, v.tiedShare = true, 1/float64(len(members))
}

// leastTied returns the probability from which an intent of the same agents is tied with
// the best.
func (v *scoredClass) leastTied(x *classScores) float32 {
	if v.wide {
		return 0
	}
	return tieRatio * x.values[v.best]
}

// rankScores finds the best class, turns the scores of the classes into probabilities in
// place, and computes the confidence features of both. features is the number of known
// features of the text.
func rankScores(x *classScores, families *classFamilies, features int, shares *wordShares) scoredClass {
	best := x.bestCandidate()
	n := x.normalize(best, families)
	p := float64(x.values[best])
	v := scoredClass{best: best, tiedShare: p / (p + (n.rest - n.untied))} // 1 without a tie, whatever the rounding
	v.features[featConstant] = 1
	if classes := len(families.of); classes > 1 {
		v.features[featLogOdds] = min(math.Log(p/max(n.rest, 1e-9)), maxLogOdds)
		v.features[featMargin] = float64(n.best - n.second)
		v.features[featEntropy] = n.entropy / math.Log(float64(classes))
	}
	if n.bestUntied > float32(math.Inf(-1)) {
		v.tied = tiedFeatures{min(math.Log((1-n.untied)/max(n.untied, 1e-9)), maxLogOdds), float64(n.best - n.bestUntied)}
	}
	v.features[featScore] = float64(n.best)
	if families.count > 0 {
		v.features[featFamily] = float64(x.values[len(families.of)+int(families.of[best])])
	}
	v.features[featLength] = math.Log1p(float64(features))
	v.features.addShares(shares)
	return v
}

// addShares adds the shares of unknown words, stop words and words of domain names.
func (f *confidenceFeatures) addShares(s *wordShares) {
	f[featUnknown] = float64(s.unknown)
	f[featUnknownSquared] = float64(s.unknown * s.unknown)
	if content := float64(1 - s.stop); content > 0 {
		share := float64(s.unknown) / content
		f[featUnknownContent] = share * share * share
	}
	f[featStop] = float64(s.stop)
	f[featDomain] = float64(s.domain)
}

// addSimilarity adds the similarity to the declared texts of the best class.
func (f *confidenceFeatures) addSimilarity(l textSimilarity) {
	f[featNearest] = l.nearest
	f[featName] = l.name
	if l.keyword {
		f[featKeyword] = 1
	}
	f[featShared] = math.Log1p(l.shared)
}
