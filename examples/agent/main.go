// Command agent is a complete agent in Go: it counts the words of the prompt.
// Start a router with examples/capabilities.yaml, then the agent, then send a request:
//
//	go run ./cmd/caprouter serve --registry examples/capabilities.yaml
//	go run ./examples/agent
//	go run ./cmd/caprouter route "How many words are in this text: one two three" --url http://127.0.0.1:8080
//
// With --delay 20s the agent reports progress, and delivers the result of an
// asynchronous request by callback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9101", "address to serve tasks on")
	router := flag.String("router", "http://127.0.0.1:8080", "URL of the router")
	delay := flag.Duration("delay", 0, "duration of each task")
	flag.Parse()

	agent, err := agentkit.New(agentkit.Config{
		AgentID:    "word_counter", // the key in the registry
		JWKSURL:    *router + "/.well-known/jwks.json",
		AsyncAfter: 5 * time.Second,
	}, withDelay(*delay, countWords))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("word_counter serves tasks of %s on http://%s/", *router, listener.Addr())
	if err := serveAgent(ctx, listener, agent); err != nil {
		log.Fatal(err)
	}
}

// shutdownTimeout bounds how long running tasks may take after a signal.
const shutdownTimeout = 10 * time.Second

// serveAgent serves tasks until ctx ends, then shuts down gracefully: first tasks for
// which the router keeps a connection open, then those whose results are delivered by
// callback.
func serveAgent(ctx context.Context, listener net.Listener, agent *agentkit.Agent) error {
	server := &http.Server{Handler: agent, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), agent.Shutdown(ctx))
}

// withDelay spreads the work over the duration, and reports progress.
func withDelay(delay time.Duration, work agentkit.Work) agentkit.Work {
	const steps = 10
	return func(ctx context.Context, task contract.Task) (contract.Result, error) {
		for i := range steps {
			if delay == 0 {
				break
			}
			agentkit.Progress(ctx, "counting", float64(100*i/steps))
			select {
			case <-time.After(delay / steps):
			case <-ctx.Done():
				return contract.Result{}, ctx.Err()
			}
		}
		return work(ctx, task)
	}
}

// countWords is called concurrently. ctx ends at the deadline of the task, or if the
// router cancels it.
func countWords(_ context.Context, task contract.Task) (contract.Result, error) {
	_, text, ok := strings.Cut(agentkit.Prompt(task), ":")
	if !ok {
		return agentkit.Failure(`write the text behind a colon: "count the words: one two three"`), nil
	}
	return agentkit.Answer(fmt.Sprintf("%d words", len(strings.Fields(text)))), nil
}
