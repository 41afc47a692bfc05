// Package calibration computes the confidence in a prediction: the probability that it is
// correct. Its parameters are fitted to held-out predictions, of which it is known whether they
// are correct, and to a prior.
//
//	Features ──Ranking──▶ log odds ──Knots──▶ confidence
//
// features.go lists the inputs. logistic.go fits the ranking of predictions by logistic
// regression. isotonic.go fits the curve from log odds to confidence by isotonic regression,
// shrunk towards a Platt curve. calibration.go combines the two, and contains the prior.
package calibration

// Features are properties of a prediction that correlate with its being correct.
type Features [FeatureCount]float64

// Indexes of Features.
const (
	Constant       = iota // 1, for the constant term
	LogOdds               // log odds of the best class
	Margin                // best score minus second best
	Score                 // the best score
	Entropy               // of the probabilities, 1 if they are all equal
	UnknownShare          // share of the words, by weight, that the corpus does not contain
	Length                // log of the number of features
	FamilyScore           // score that the family of the best class adds
	UnknownSquared        // the square of UnknownShare: a foreign language is worse than a few unknown words
	UnknownContent        // cube of the unknown share of the content words: one in another language
	StopShare             // share of the words, by weight, that are stop words
	DomainShare           // share of the words, by weight, that are part of domain names
	NearestExample        // cosine to the nearest example of the best class, over words
	NameShare             // share of the name of the best class that the text contains
	KeywordMatch          // 1 if the text contains a keyword of its agents that no others declare
	SharedFeatures        // log of the number of features shared with the nearest text of the class
	FeatureCount
)

// Trial is a prediction with its outcome.
type Trial struct {
	Features   Features
	Correct    bool
	OutOfScope bool // the right intent is not declared, so any prediction is wrong
}
