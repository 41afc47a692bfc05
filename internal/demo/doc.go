// Package demo is caprouter shown at work: three sample agents that do a small
// real job each, the registry that describes them, and the requests the demo
// sends. The agents run on loopback, built on agentkit like anybody's: they
// take tasks over HTTP and verify the token of each.
//
//	quality_agent  static check of Python source      internal/demo/pycheck
//	rag_agent      search in the project's documents  internal/demo/docsearch
//	billing_agent  cost analysis of a CSV export      internal/demo/costs
//
// Who runs it starts the agents first, because the registry names their ports:
//
//	urls, err := demo.StartAgents(ctx, group, routerURL+"/.well-known/jwks.json")
//	write(demo.Registry(urls))                   // a registry file for the router
//	for _, step := range demo.Requests(false) {  // what to ask it
//		step.Answer(last)                        // where the step answers a question
//		…
//	}
//
// It starts no router and prints nothing; the command does both.
package demo
