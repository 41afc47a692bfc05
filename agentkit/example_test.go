package agentkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

// An agent that counts words. It registers itself, and stops gracefully on SIGTERM.
func ExampleRun() {
	router := newRouterServer() // a fake router
	defer router.server.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go router.sendWhenRegistered("one two three", stop) // prints the answer

	err := agentkit.Run(ctx, agentkit.Config{
		AgentID:   "word_counter",
		RouterURL: router.server.URL,
		Listen:    "127.0.0.1:0",
		Token:     func(context.Context) (string, error) { return "or agentkit.TokenFile", nil },
		Registration: contract.Registration{
			Instance: "i1", // only for this example
			Match:    contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
		},
	}, func(_ context.Context, t contract.Task) (contract.Result, error) {
		return agentkit.Answer(fmt.Sprintf("%d words", len(strings.Fields(agentkit.Prompt(t))))), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 3 words
}

// An agent that is declared in the registry file. A real one ends with
//
//	log.Fatal(http.ListenAndServe("127.0.0.1:9101", agent))
func ExampleNew() {
	router := startRouter() // a fake router with a key set
	defer router.server.Close()

	work := func(_ context.Context, t contract.Task) (contract.Result, error) {
		prompt := agentkit.Prompt(t)
		if prompt == "" {
			return agentkit.Failure("there is nothing to count"), nil
		}
		return agentkit.Answer(fmt.Sprintf("%d words", len(strings.Fields(prompt)))), nil
	}
	agent, err := agentkit.New(agentkit.Config{
		AgentID: "word_counter",
		JWKSURL: router.server.URL + "/.well-known/jwks.json",
		Client:  router.server.Client(),
	}, work)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(agent)
	defer server.Close()

	fmt.Println(router.send(server, "one two three"))
	fmt.Println(router.send(server, ""))
	// Output:
	// {"task_id":"t1","status":"success","data":{"answer":"3 words"}}
	// {"task_id":"t2","status":"failure","explanations":["there is nothing to count"]}
}

// Input and Data carry values other than text.
func ExampleInput() {
	task := contract.Task{Inputs: map[string]json.RawMessage{"numbers": json.RawMessage(`[1,2,3]`)}}

	var numbers []int
	if ok, err := agentkit.Input(task, "numbers", &numbers); err != nil || !ok {
		log.Fatal("give me numbers")
	}
	for i, n := range numbers {
		numbers[i] = n * n
	}
	data, err := agentkit.Data(map[string]any{"squares": numbers, "answer": "three squares"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(data["squares"]))
	// Output: [1,4,9]
}

func startRouter() *fakeRouter {
	r := newKeyOnly()
	r.server = httptest.NewServer(r)
	return r
}

// send sends a task with the prompt to the agent and returns the response.
func (r *fakeRouter) send(agent *httptest.Server, prompt string) string {
	r.sent++
	id := fmt.Sprintf("t%d", r.sent)
	body := validTask().with("task_id", id).with("inputs", object{"prompt": prompt}).json()
	req, err := http.NewRequest(http.MethodPost, agent.URL, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+r.token(validClaims().with("task_id", id)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := agent.Client().Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(answer)
}
