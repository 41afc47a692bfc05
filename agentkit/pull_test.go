package agentkit_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A lease that the router repeats has the result of the first one.
func TestPullTasks_RepeatedLease(t *testing.T) {
	var polls atomic.Int32
	results := make(chan string, 2)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/lease") && polls.Add(1) <= 2:
			_ = json.NewEncoder(w).Encode(contract.LeasedTask{
				Task: contract.Task{
					TaskID: "01a22101-b243-74e8-817a-22c4b47a29b3", Attempt: 1, Deadline: time.Now().Add(time.Minute),
					Callback: &contract.Callback{URL: server.URL + "/api/v1/tasks/01a22101-b243-74e8-817a-22c4b47a29b3/result", Token: "report"},
				},
				Token: "not a token",
				Lease: contract.TaskLease{TaskID: "01a22101-b243-74e8-817a-22c4b47a29b3", State: contract.LeaseHeld, HeartbeatS: 10},
			})
		case strings.HasSuffix(r.URL.Path, "/lease"):
			w.WriteHeader(http.StatusNoContent)
		case strings.HasSuffix(r.URL.Path, "/result"):
			var result contract.Result
			if err := json.NewDecoder(r.Body).Decode(&result); err != nil {
				t.Error(err)
			}
			results <- string(result.Status)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	agent, err := agentkit.New(agentkit.Config{AgentID: "puller", RouterURL: server.URL, Logger: slog.New(slog.DiscardHandler)},
		func(context.Context, contract.Task) (contract.Result, error) { return contract.Result{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- agent.PullTasks(ctx) }()
	for range 2 {
		if got := testkit.Receive(t, results); got != string(contract.ResultFailure) {
			t.Errorf("got status %s, want %s", got, contract.ResultFailure)
		}
	}
	stop()
	if err := testkit.Receive(t, ended); err != nil {
		t.Error(err)
	}
}
