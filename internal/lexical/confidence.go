package lexical

import (
	"math"

	"github.com/caprouter/caprouter/internal/lexical/calibration"
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
	features calibration.Features
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
func (v *scoredClass) withTies() calibration.Features {
	f := v.features
	f[calibration.LogOdds], f[calibration.Margin] = v.tied.logOdds, v.tied.margin
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
	v.features[calibration.Constant] = 1
	if classes := len(families.of); classes > 1 {
		v.features[calibration.LogOdds] = min(math.Log(p/max(n.rest, 1e-9)), maxLogOdds)
		v.features[calibration.Margin] = float64(n.best - n.second)
		v.features[calibration.Entropy] = n.entropy / math.Log(float64(classes))
	}
	if n.bestUntied > float32(math.Inf(-1)) {
		v.tied = tiedFeatures{min(math.Log((1-n.untied)/max(n.untied, 1e-9)), maxLogOdds), float64(n.best - n.bestUntied)}
	}
	v.features[calibration.Score] = float64(n.best)
	if families.count > 0 {
		v.features[calibration.FamilyScore] = float64(x.values[len(families.of)+int(families.of[best])])
	}
	v.features[calibration.Length] = math.Log1p(float64(features))
	addShares(&v.features, shares)
	return v
}

// addShares adds the shares of unknown words, stop words and words of domain names.
func addShares(f *calibration.Features, s *wordShares) {
	f[calibration.UnknownShare] = float64(s.unknown)
	f[calibration.UnknownSquared] = float64(s.unknown * s.unknown)
	if content := float64(1 - s.stop); content > 0 {
		share := float64(s.unknown) / content
		f[calibration.UnknownContent] = share * share * share
	}
	f[calibration.StopShare] = float64(s.stop)
	f[calibration.DomainShare] = float64(s.domain)
}

// addSimilarity adds the similarity to the declared texts of the best class.
func addSimilarity(f *calibration.Features, l textSimilarity) {
	f[calibration.NearestExample] = l.nearest
	f[calibration.NameShare] = l.name
	if l.keyword {
		f[calibration.KeywordMatch] = 1
	}
	f[calibration.SharedFeatures] = math.Log1p(l.shared)
}
