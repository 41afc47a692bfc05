// Package fallback answers a request that no agent may serve, by the fallback
// policy that the router has chosen.
//
// [Answer] is policy A: a model answers the caller directly, within limits. Its
// text follows a preamble in the caller's language that states why no agent serves
// the request.
//
//	Não há agente especializado para essa demanda. Segue uma resposta direta e limitada:
//
//	Um índice parcial …
//
// If there is no model, or its reply is of no use, the answer states that instead
// (data.degraded). The facts of policy B are part of either answer. The reply of
// the model is text for the caller only: no code here acts on it.
//
// [Unsupported] is policy B: it states why no agent serves the request, which
// agents are nearest and by how much, and what the caller can ask for instead. It
// calls no model.
//
//	{"reason":"no_match",
//	 "detail":"the request names no subject that is served here: name one of databricks, python, semaforo",
//	 "needed":{"score":0.65,"confidence":0.5},
//	 "nearest":[{"agent_id":"quality_agent","score":0.5,"missing_score":0.15,"gates":[…]}],
//	 "accepted_intents":["code_review",…], "accepted_domains":["databricks",…],
//	 "examples":["review my pull request",…]}
//
// [Propose] is policy C: it suggests the missing agent as a registry that loads as
// it is, with requirements and risks. internal/tickets stores the suggestions.
//
// All of them name only agents that the caller may use, and only intents, domains
// and examples that such agents declare (package internal/visibility). The same
// request of the same caller to the same registry returns the same bytes.
package fallback
