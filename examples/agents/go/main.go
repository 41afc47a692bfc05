// Command go is a complete agent in Go that registers itself. README.md has the
// commands that start it with a router.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

func main() {
	pull := flag.Bool("pull", false, "pull tasks, as an agent that the router cannot reach")
	router := flag.String("router", "http://127.0.0.1:8080", "`URL` of the router")
	flag.Parse()
	protocol := contract.ProtocolHTTP
	if *pull {
		protocol = contract.ProtocolPull
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := agentkit.Run(ctx, agentkit.Config{
		AgentID:   "word_counter", // the key of the grant
		RouterURL: *router,
		Listen:    "127.0.0.1:9101",
		Registration: contract.Registration{
			Match:    contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
			Endpoint: contract.Endpoint{Protocol: protocol},
			Examples: map[string][]string{"count_words": {"how many words are in this text", "count the words"}},
		},
		// Token: agentkit.TokenFile("word_counter.token"), // with auth.mode jwt
	}, countWords)
	if err != nil {
		log.Fatal(err)
	}
}

func countWords(ctx context.Context, task contract.Task) (contract.Result, error) {
	agentkit.Progress(ctx, "counting", 50)
	return agentkit.Answer(fmt.Sprintf("%d words", len(strings.Fields(agentkit.Prompt(task))))), nil
}
