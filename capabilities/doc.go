// Package capabilities owns the registry of agents: the one file that says who
// can do what (003 §0, §1). It turns that file into a [Snapshot] that never
// changes, or into a list of mistakes with file, line and column; it watches the
// file and hands on a new snapshot when a good one appears. It does not decide
// who serves a request (package matcher) and it calls nobody.
//
//	capabilities.yaml ──▶ Parse ──▶ *Snapshot ──▶ Watcher ──▶ apply func(*Snapshot) error
//	                        │           └──▶ Lint ──▶ what is legal but probably wrong
//	                        └──▶ strictyaml.Errors: every mistake, where it is, what was meant
//
// The smallest file that routes anything:
//
//	clients:
//	  quality_agent:
//	    match:
//	      intent: ["code_review"]
//	      domains: ["python"]
//	    endpoint: { protocol: http, url: "http://127.0.0.1:9101/tasks" }
//
// A broken or half-written file never replaces a good one: the watcher keeps
// what it has, says so in its [Status] and tries again when the file changes.
package capabilities
