// Package lexical guesses what a text asks for from the words a registry
// declares: names of intents and domains, example utterances, keywords. It
// knows no model, no network and no registry file; it is pure, and the same
// corpus and text always give the same prediction.
//
//	Corpus ──Train──▶ Model ──Classify(text)──▶ Prediction{Intent, Confidence, Domains, …}
//	                    ├─────Segments(text)──▶ the requests a text is made of
//	                    ├─────Evidence(text)──▶ whatever speaks for a label, however weakly
//	                    └─────Nearest(text)───▶ the declared utterances most like it
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
// Below [Sure] the intent is contract.Unknown. A domain is found when all the
// words of its name are. Words are compared folded: case, accents, width, plural
// and the commonest verb endings do not count (stem.go). Chinese and Japanese,
// which do not space their words, are compared by pairs of characters. What
// stands in a fenced code block is material, not request, and is not read; nor is
// what masking left in place of a value ([EMAIL_1]).
//
//	m := lexical.Train(lexical.Corpus{
//		Intents: []lexical.IntentDoc{{Name: "code_review"}, {Name: "cost_analysis"}},
//		Domains: []string{"python", "azure"},
//	})
//	p := m.Classify("Please do a code review of this python module")
//	// p.Intent "code_review", p.Confidence 1, p.Domains ["python"]
//
// Labels and texts are first cut into words (words.go); every label and example
// becomes a pattern over word numbers (train.go); postings lead from a word to
// the few patterns worth comparing (classify.go), so that the cost of a
// prediction grows with the text and with what is like it, not with the registry.
package lexical
