// Package lexical predicts the intent and domains of a text from the words that
// a registry declares: names of intents and domains, example utterances and
// keywords. It uses no model service, network or file. The same corpus and text
// always give the same prediction.
//
//	Corpus ──Train──▶ Model ──Classify────────▶ Prediction{Intent, Confidence, Domains, …}
//	                    ├─────SplitClauses────▶ the clauses of a text
//	                    ├─────NewText─────────▶ Text, which splits into requests
//	                    ├─────Explain─────────▶ the evidence for a prediction
//	                    ├─────GatherEvidence──▶ all evidence, however weak
//	                    └─────NearestExamples─▶ the most similar declared utterances
//
// [ClusterIndex] clusters texts without declared intents. Package ranking ranks agents
// and tools that have only a name and a description.
//
//	m := lexical.Train(lexical.Corpus{
//		Intents: []lexical.IntentDoc{{Name: "code_review"}, {Name: "cost_analysis"}},
//		Domains: []string{"python", "azure"},
//	})
//	p := m.Classify("Please do a code review of this python module")
//	// p.Intent "code_review", p.Confidence 0.98, p.Domains ["python"]
//
// # Reading order
//
// A prediction follows the first path, and Train the second. Both use the same words
// and features.
//
//	Classify  text
//	            │ package token               folded words; skips names (label.go) and other parts of the text
//	          tokens
//	            │ analysis.go                 looks up words, replaces synonyms and typos (replacement.go, typo.go)
//	          features                        package feature: hashes of words, stems, pairs and n-grams; a word vector
//	            │ linear.go, quantized.go     tf-idf weights, a sparse linear model, quantized; vectors.go adds vectors
//	          scores
//	            │ scores.go, confidence.go    softmax; calibration features of the best intent
//	          confidence                      package calibration: a probability, which support.go and negated.go lower
//	            │ classify.go                 reject threshold, ties, alternatives; domains.go adds domains
//	          Prediction
//	            │ clauses.go, requests.go     divide a text into requests by the predictions for its parts
//	          intents of the parts
//
//	Train     Corpus
//	            │ train.go                    merges intents; index.go builds the index of words
//	          samples
//	            │ trainingset.go              examples, names, keywords … as numbered features and classes
//	          weights
//	            │ sgd.go                      stochastic gradient descent
//	          held-out predictions
//	            │ crossfit.go                 models of folds, and without some intents
//	          calibration, thresholds
//	            │ package calibration         logistic regression, isotonic curve, priors
//	          Model                           stored.go keeps the learned part
//
// evidence.go and explain.go list the reasons for a prediction.
//
// # Model
//
// A linear model is trained from the first example on, and its confidence calibrated:
//
//   - Features (package feature) are words, stems, pairs of stems and character 3- and
//     4-grams inside words; for Chinese and Japanese, runs of one to three
//     characters. They are weighted by inverse document frequency and normalized.
//     In a set with few examples the sum of the vectors of the words (package
//     wordvectors) is a feature too.
//   - The model (linear.go, quantized.go, sgd.go) is multinomial logistic regression, trained by
//     stochastic gradient descent with a margin, dropout and averaging. Intents
//     that the same agents serve form a family and share weights (multi-task
//     learning). Names, keywords and descriptions are samples, a keyword one of the
//     family; not_for texts are negative samples. The weights are quantized to bytes.
//   - Confidence (crossfit.go, confidence.go, package calibration) is fitted on
//     predictions for held-out examples (cross-fitting) and for the examples of
//     excluded intents, which serve as out-of-scope requests. A logistic regression
//     over log odds, margin, entropy, score, the share of unknown words and the
//     similarity to the declared texts (nearest.go) ranks predictions (stacking);
//     an isotonic curve, shrunk towards a Platt curve, maps the rank to a
//     probability. Both are maximum a posteriori estimates: their prior (calibration.go)
//     was learned from the predictions of thousands of small registries, and fades
//     as held-out predictions increase. Confidence is the probability that the
//     intent is correct if the request is in scope. In an intent with few examples
//     it is lower if a single word speaks for it (support.go).
//   - A text that one intent declares as an example, or its name of several words, has that
//     intent.
//   - [TrainStored] keeps what was learned, and only builds the index of a corpus that
//     was trained before (stored.go). [WithProgress] reports how far a training is.
//   - Thresholds (crossfit.go) are chosen on the same predictions. Below
//     [Model.RejectThreshold] the intent is contract.Unknown; the more examples an
//     intent has, the fewer correct answers this loses. From [Model.AcceptThreshold] on, 98 % of the
//     answers are expected to be correct if 18 % of the requests are out of scope.
//
// References: tf-idf n-grams with linear models (Joachims 1998; Wang and Manning
// 2012), dropout training (Wager, Wang and Liang 2013), averaging (Polyak and
// Juditsky 1992), stacking (Wolpert 1992), calibration (Platt 1999; Zadrozny and
// Elkan 2002), out-of-scope intents (Larson et al. 2019).
//
// # Text processing
//
// Domains (domains.go) are those whose name the text contains, all of its words;
// else those with an alias or a synonym in the text; else the one that the examples propose for
// the accepted intent. Words are compared folded: case, accents, width, plural and
// the most common verb endings do not matter (package token). Chinese and Japanese are
// compared by pairs of characters. A word that is one edit away from a word of the
// corpus counts as that word, and as an unknown one; one that means the same as a word of
// the corpus counts as that word (replacement.go, package synonyms). Fenced code blocks,
// JSON objects, HTML comments and placeholders of masked values ([EMAIL_1]) are not
// read, because they are not part of the request.
//
// A text that asks not to do what a word of the intent's name means ("don't cancel my order",
// package negation) is not accepted.
//
// Names of intents and agents in the spelling of programs (code_review,
// codeReview) are not read either if the intent has examples and none of them is
// spelt so (label.go), unless such a name is the whole text.
//
// To explain a prediction, every name, keyword and example is a pattern over word
// numbers, and postings lead from a word to the few patterns worth comparing (index.go). The
// cost of a prediction therefore grows with the text and its similar patterns, not
// with the registry.
package lexical
