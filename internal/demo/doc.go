// Package demo contains the parts of `caprouter demo`: three sample agents, the
// registry that describes them, and the requests that the demo sends; and the one
// agent of the registry that `caprouter init` writes. The agents are HTTP servers on
// loopback, built with agentkit like any agent: they verify the token of each task.
//
//	word_counter   counts words, for `caprouter agent-sample`  sample.go
//	quality_agent  checks Python source line by line           review.go
//	rag_agent      searches the documents of this project      search.go
//	billing_agent  adds up a cost export in CSV                costs.go
//
// Start the agents before the router, because the registry contains their ports:
//
//	urls, err := demo.StartAgents(ctx, group, routerURL+"/.well-known/jwks.json")
//	write(demo.Registry(urls))                // the registry file of the router
//	for _, step := range demo.Steps(false) {
//		step.ChooseOption(last)               // if step.ChosenIntent is set
//		…
//	}
//
// The package neither starts a router nor prints; the command does both.
package demo
