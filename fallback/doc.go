// Package fallback answers a request nobody may serve, by one of the policies of
// 003 §5. It decides nothing; which policy holds is the router's to say.
//
// [Answer] is policy A: a model answers the caller directly, within bounds, and
// what it says stands under a sentence of ours, in the caller's language, that says
// why no agent has the request.
//
//	Não há agente especializado para essa demanda. Segue uma resposta direta e limitada:
//
//	Um índice parcial …
//
// Without a model, or when it says nothing of use, the answer says so
// (data.degraded). The facts of policy B stand beside either. What a model says is
// text for the caller and nothing else: nothing here acts on it.
//
// [Unsupported] is policy B: it says why, who came nearest and by how much, and
// what the caller could ask for instead. It asks nobody.
//
//	{"reason":"no_match",
//	 "detail":"quality_agent is nearest with 0.50 of the 0.65 needed: name one of its domains: databricks, python, semaforo",
//	 "nearest":[{"agent_id":"quality_agent","score":0.5,"missing_score":0.15,"gates":[…]}],
//	 "accepted_intents":["code_review",…], "accepted_domains":["databricks",…],
//	 "examples":["review my pull request",…]}
//
// [Propose] is policy C: what agent is missing, as a registry that loads as it is,
// what it would have to do, and what to beware of. Tickets are internal/tickets'.
//
// Everything in them is limited to agents the caller may use: an agent it is not
// entitled to is not named, nor are the intents, domains and examples that only
// such agents declare. The same request to the same registry by the same caller
// gets the same bytes.
package fallback
