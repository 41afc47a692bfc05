// Package llm is the one seam to a language model: a request of text in, a
// reply of text out, and an error that says in a stable word why there is none.
// It owns how often a model is asked, when it is left alone, and that its key
// is seen by nobody but its server. It does not know what is asked (prompts) or
// what a reply means (classifier, fallback).
//
//	Client.Generate
//	   │ breaker, calls in flight, retry budget      one layer, for every provider
//	   ▼
//	Provider.Generate                                internal/llm/gemini, …/genai, …/openai
//	   │ their wire
//	   ▼
//	HTTPClient                                       the key's header, size, status and type of the answer
package llm
