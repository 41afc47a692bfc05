// Package classifier turns a prompt into a contract.Classification: intent,
// domains, subtasks and confidence. It only proposes. Package matcher decides,
// and a classification grants no permission.
//
// The mode selects the stages, which run in order until one of them succeeds:
//
//	llm        cache ──▶ model ──▶ lexical
//	cascade    cache ──▶ lexical, if confident ──▶ model ──▶ lexical
//	lexical    lexical
//
// The lexical stage always succeeds, so Classify has no error: if the model fails
// or is too slow, Reason contains the cause.
//
// # Model
//
// The model receives a prompt of package prompts and a schema. Its reply is
// untrusted input: parseReply accepts only one JSON object of the expected shape
// with names that the registry declares (a closed vocabulary). If a reply is
// invalid, one repair call sends the flaw back to the model; if it was cut off, one
// more call has a larger token limit. One timeout bounds all calls of a prompt.
//
// If there are many agents, the model is shown a shortlist that the lexical model
// selects (shortlist.go). Concurrent callers with the same request share one call
// (singleflight.go). Replies are cached under everything they depend on (cache.go);
// failures are not cached.
//
// # Lexical
//
//	prompt ──▶ lexical.Model ──▶ whole prompt ─────────┐
//	                └──▶ parts ──▶ each part ──────────┴──▶ Classification
//
// A prompt with several requests is split. Each part with a known intent becomes a
// subtask if there are at least two different intents:
//
//	"Review this python code and do a cost analysis of our azure bill"
//	  intent code_review, domains [python azure], confidence 1
//	  subtasks: "Review this python code"               code_review    [python]
//	            "do a cost analysis of our azure bill"  cost_analysis  [azure]
//
// # Use
//
//	c, err := classifier.New(classifier.Config{Model: client}) // *llm.Client
//	defer c.Close()
//	result := c.Classify(ctx, classifier.Input{
//		Prompt: prompt, Catalogue: catalogue, Lexical: lexical.Train(classifier.BuildCorpus(catalogue)),
//	})
package classifier
