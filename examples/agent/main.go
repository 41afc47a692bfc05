// Command agent is a complete agent in Go: it counts the words of the prompt.
// Start a router with examples/capabilities.yaml, then this, then ask:
//
//	go run ./cmd/caprouter serve --registry examples/capabilities.yaml
//	go run ./examples/agent
//	go run ./cmd/caprouter route "How many words are in this text: one two three" --url http://127.0.0.1:8080
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9101", "address to serve tasks on")
	router := flag.String("router", "http://127.0.0.1:8080", "the router whose tasks are taken")
	flag.Parse()

	agent, err := agentkit.New(agentkit.Config{
		AgentID: "word_counter", // the key in the registry
		JWKSURL: *router + "/.well-known/jwks.json",
	}, countWords)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *listen, Handler: agent, ReadHeaderTimeout: 5 * time.Second}
	log.Printf("word_counter takes tasks of %s on http://%s/", *router, *listen)
	log.Fatal(server.ListenAndServe())
}

// countWords does one task. It is called from several goroutines at once; ctx
// ends at the deadline and when nobody waits for the answer any more.
func countWords(_ context.Context, task contract.Task) (contract.Result, error) {
	_, text, ok := strings.Cut(agentkit.Prompt(task), ":")
	if !ok {
		return agentkit.Failure(`write the text behind a colon: "count the words: one two three"`), nil
	}
	return agentkit.Answer(fmt.Sprintf("%d words", len(strings.Fields(text)))), nil
}
