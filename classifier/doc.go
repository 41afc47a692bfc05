// Package classifier turns a prompt into a contract.Classification: the intent,
// the domains, the subtasks and how sure that is. It only proposes; package
// matcher decides (003 §3), and nothing said here entitles anybody to anything.
//
// Three ways lead to a classification, in the order of the mode:
//
//	llm        cache ──▶ model ──▶ words
//	cascade    cache ──▶ words, if sure enough ──▶ model ──▶ words
//	lexical    words
//
// The last one never fails, so neither does Classify: whatever a model does, or
// does not do in time, the registry's own words stand in for it, and Reason says
// why.
//
// # The model
//
// A model is asked with package prompts' text and held to a schema, and its
// reply is still taken for what it is, somebody else's bytes: parseReply accepts
// one JSON object of one shape with names the registry declares, or nothing. A
// reply that is not accepted is asked for once more, with what is wrong with it;
// one that was cut off is given more room instead. All of that together has one
// budget of time.
//
// Of more agents than a model chooses well from it is shown a few, chosen by the
// registry's words (shortlist.go).
//
// Callers with the same question share one call, which belongs to none of them
// (flight.go). What a model said is kept under everything that it depends on
// (cache.go); failures are not.
//
// # The words
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
//	c, err := classifier.New(classifier.Config{Model: client}) // *llm.Client
//	defer c.Close()
//	clf := c.Classify(ctx, classifier.Input{Prompt: prompt, Registry: snapshot, Lexical: lexical.Train(classifier.Corpus(snapshot))})
package classifier
