// Package capabilities loads the registry of agents: the file that declares which
// agent serves which intents and domains, and how it is reached. It turns the file
// into an immutable [Snapshot], or into a list of mistakes with file, line and
// column. Package matcher decides which agent serves a request; package
// internal/registry watches the file.
//
//	capabilities.yaml ──▶ Parse ──▶ *Snapshot ──▶ Catalogue  what decisions depend on
//	                        │           │    └──▶ Fleet      how agents are reached
//	                        │           └──▶ Lint ──▶ findings: legal, but probably wrong
//	                        └──▶ strictyaml.Errors: every mistake, with a suggestion
//
// The smallest file that routes anything:
//
//	clients:
//	  quality_agent:
//	    match:
//	      intent: ["code_review"]
//	      domains: ["python"]
//	    endpoint: { protocol: http, url: "http://127.0.0.1:9101/tasks" }
package capabilities
