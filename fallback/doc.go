// Package fallback answers a request nobody may serve. One policy exists, B of
// 003 §5: it says why, who came nearest and by how much, and what the caller
// could ask for instead. It asks nobody and decides nothing.
//
//	{"reason":"no_match",
//	 "detail":"quality_agent is nearest with 0.50 of the 0.65 needed: name one of its domains: databricks, python, semaforo",
//	 "nearest":[{"agent_id":"quality_agent","score":0.5,"missing_score":0.15,"gates":[…]}],
//	 "accepted_intents":["code_review",…], "accepted_domains":["databricks",…],
//	 "examples":["review my pull request",…]}
//
// Everything in it is limited to agents the caller may use: an agent it is not
// entitled to is not named, nor are the intents, domains and examples that only
// such agents declare. The same request to the same registry by the same caller
// gets the same bytes.
package fallback
