// Package llm is the interface to language models: a text request, a text reply,
// and errors with stable reasons. It contains retries, the circuit breaker, budgets
// and the protection of the key. Prompts (package prompts) and the meaning of
// replies (classifier, fallback) are not its concern.
//
//	Client.Generate
//	   │ circuit breaker, calls in flight, retry budget   common to all providers
//	   ▼
//	Provider.Generate                                     internal/llm/gemini, …/genai, …/openai
//	   │ API of the vendor
//	   ▼
//	NewHTTPClient                                         key header; size, status and type of the response
package llm
