// Command agent is a complete agent in Go: it counts the words of the prompt.
// Start a router with examples/capabilities.yaml, then this, then ask:
//
//	go run ./cmd/caprouter serve --registry examples/capabilities.yaml
//	go run ./examples/agent
//	go run ./cmd/caprouter route "How many words are in this text: one two three" --url http://127.0.0.1:8080
//
// With --delay 20s it counts slowly, tells how far it is, and delivers the result
// of an asynchronous request when it has it.
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
	router := flag.String("router", "http://127.0.0.1:8080", "the router whose tasks are taken")
	delay := flag.Duration("delay", 0, "how long counting takes")
	flag.Parse()

	agent, err := agentkit.New(agentkit.Config{
		AgentID:    "word_counter", // the key in the registry
		JWKSURL:    *router + "/.well-known/jwks.json",
		AsyncAfter: 5 * time.Second,
	}, slowly(*delay, countWords))
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
	log.Printf("word_counter takes tasks of %s on http://%s/", *router, listener.Addr())
	if err := serve(ctx, listener, agent); err != nil {
		log.Fatal(err)
	}
}

// grace is how long tasks that were taken may still last when the agent stops.
const grace = 10 * time.Second

// serve takes tasks until ctx ends, then brings to an end what it has taken: what
// the router waits for on a connection, and after that what it does not.
func serve(ctx context.Context, listener net.Listener, agent *agentkit.Agent) error {
	server := &http.Server{Handler: agent, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), agent.Shutdown(ctx))
}

// slowly takes that long for the work, and says how far it is.
func slowly(delay time.Duration, work agentkit.Work) agentkit.Work {
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

// countWords does one task. It is called from several goroutines at once; ctx
// ends at the deadline and when nobody waits for the answer any more.
func countWords(_ context.Context, task contract.Task) (contract.Result, error) {
	_, text, ok := strings.Cut(agentkit.Prompt(task), ":")
	if !ok {
		return agentkit.Failure(`write the text behind a colon: "count the words: one two three"`), nil
	}
	return agentkit.Answer(fmt.Sprintf("%d words", len(strings.Fields(text)))), nil
}
