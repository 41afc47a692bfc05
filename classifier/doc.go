// Package classifier turns a prompt into a contract.Classification: the intent,
// the domains, the subtasks and how sure that is. It only proposes; package
// matcher decides (003 §3), and nothing said here entitles anybody to anything.
//
// One mode exists, the lexical one, which needs no key and no network:
//
//	prompt ──▶ lexical.Model ──▶ the whole ─────────────┐
//	                └──▶ segments ──▶ each by itself ───┴──▶ Classification
//
// A prompt that asks for several things is split: each segment that is sure of
// an intent of its own becomes a subtask, if that makes two different intents or
// more.
//
//	"Review this python code and do a cost analysis of our azure bill"
//	  intent code_review, domains [python azure], confidence 1
//	  subtasks: "Review this python code"            code_review    [python]
//	            "do a cost analysis of our azure bill"  cost_analysis  [azure]
//
//	c, err := classifier.New(classifier.Config{})
//	clf := c.Classify(ctx, classifier.Input{Prompt: prompt, Registry: snapshot, Lexical: lexical.Train(classifier.Corpus(snapshot))})
package classifier
