// Package lexical guesses what a text asks for from the words a registry
// declares: names of intents and domains, example utterances, keywords. It
// knows no model, no network and no registry file; it is pure, and the same
// corpus and text always give the same prediction.
//
//	Corpus ──Train──▶ Model ──Classify(text)──▶ Prediction{Intent, Confidence, Domains, …}
//	                    ├─────Segments(text)──▶ the pieces a text is made of
//	                    ├───────Divide(text)──▶ the requests it is made of
//	                    ├──────Explain(text)──▶ what a prediction goes by
//	                    ├─────Evidence(text)──▶ whatever speaks for a label, however weakly
//	                    └─────Nearest(text)───▶ the declared utterances most like it
//
// [Groups] tells texts apart that no registry declares: which of the groups there
// are a text is most like (similar.go).
//
// What a corpus has decides how it is read.
//
// # With examples enough: learned and measured
//
// With five examples or more of (nearly) every intent, and a hundred in all, a
// linear model is learned and its confidence measured (statistics.go):
//
//		text ──features──▶ hashes ──table──▶ weights ──▶ scores ──softmax──▶ signs ──calibration──▶ confidence
//
//	  - Features (features.go) are words, stems, pairs of stems and the character
//	    3- and 4-grams inside words; of Chinese and Japanese, runs of one to three
//	    characters. They are weighed by rarity and scaled to length 1, words and
//	    n-grams by halves; what the corpus does not have counts in the length.
//	  - The model (linear.go, fit.go) is multinomial logistic regression by
//	    stochastic gradient descent, with a margin, dropout and averaging. A feature
//	    has weights for the intents it was seen in, and for the agents of these: a
//	    family of intents learns together what it is about (multi-task learning).
//	    Names and descriptions are examples; not_for are examples of what an intent
//	    is not. It is kept in bytes (compact.go).
//	  - Confidence (crossfit.go, signs.go, calibrate.go) comes from models that did
//	    not see the examples they were tried on (cross-fitting) and from one that
//	    did without some intents, whose examples stand for requests nobody declared.
//	    A logistic regression over odds, margin, entropy, score and the share of
//	    unknown words orders predictions (stacking), an isotonic curve drawn towards
//	    Platt's turns the order into probabilities. Confidence is the probability
//	    that the intent is right given that it is one of those declared.
//	  - Thresholds (unknown.go) are chosen from the same trials: [Model.Threshold],
//	    below which the intent is contract.Unknown, gives up no more than 0.75 % of
//	    the right answers; from [Model.Accept] on 98 % of the answers are expected
//	    to be right where 18 % of the requests are out of scope.
//
// Ideas and their sources: tf-idf n-grams with linear models (Joachims
// 1998; Wang and Manning 2012), dropout training (Wager, Wang and Liang 2013),
// averaging (Polyak and Juditsky 1992), stacking (Wolpert 1992), calibration
// (Platt 1999; Zadrozny and Elkan 2002), out-of-scope intents (Larson et al.
// 2019), BM25 (Robertson and Walker 1994).
//
// A text of whose content words the corpus has fewer than one in three is in
// another language, and never claimed.
//
// # With fewer: rules
//
// The confidence in an intent is the best of what speaks for it:
//
//   - the share of its name's words that the text has: "review this python
//     code" has both of code_review's, "review" alone has half of them;
//   - 1 when the text has every content word of one of its examples;
//   - 1 when the text has a keyword of one of its agents and, besides it, a word
//     of the intent's name or examples;
//   - less than 1 for a text that has most of an example's weight of words: at
//     least half, and more the more else it says.
//
// Below [Sure] the intent is contract.Unknown.
//
// # Always
//
// A domain is found when all the words of its name are; where a text names none,
// the only one that the agents of the intent declare goes without saying. Words
// are compared folded: case, accents, width, plural and the commonest verb endings
// do not count (stem.go). Chinese and Japanese, which do not space their words,
// are compared by pairs of characters. What stands in a fenced code block, a JSON
// object or an HTML comment is material, not request, and is not read; nor is what
// masking left in place of a value ([EMAIL_1]).
//
// Nor is a label: the name of an intent or agent as programs spell it
// (code_review, codeReview), where the intent has examples to be recognised by and
// none of them spells it so (label.go). A text that is a label and nothing else is
// read all the same.
//
//	m := lexical.Train(lexical.Corpus{
//		Intents: []lexical.IntentDoc{{Name: "code_review"}, {Name: "cost_analysis"}},
//		Domains: []string{"python", "azure"},
//	})
//	p := m.Classify("Please do a code review of this python module")
//	// p.Intent "code_review", p.Confidence 1, p.Domains ["python"]
//
// [Ranker] is for agents and tools that have a name and a description and nothing
// else.
//
// For the rules, labels and texts are first cut into words (words.go); every
// label and example becomes a pattern over word numbers (train.go); postings lead
// from a word to the few patterns worth comparing (classify.go), so that the cost
// of a prediction grows with the text and with what is like it, not with the
// registry.
package lexical
