package agentkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// routerServer is a fake router with a network: agents register at it, and it sends them tasks.
type routerServer struct {
	*fakeRouter
	registered chan contract.Registration
	onDrain    func() // called before the reply

	mu     sync.Mutex
	events []string
}

func newRouterServer() *routerServer {
	r := &routerServer{fakeRouter: newKeyOnly(), registered: make(chan contract.Registration, 1), onDrain: func() {}}
	r.server = httptest.NewServer(r)
	return r
}

func (r *routerServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method + " " + req.URL.RequestURI() {
	case callRegister:
		var declared contract.Registration
		if err := json.NewDecoder(req.Body).Decode(&declared); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, leaseBody(contract.AgentActive))
		r.registered <- declared
	case callDrain:
		r.event("drain")
		r.onDrain()
		_, _ = io.WriteString(w, leaseBody(contract.AgentDraining))
	case callDeregister:
		r.event("deregister")
		w.WriteHeader(http.StatusNoContent)
	case "GET /.well-known/jwks.json":
		r.fakeRouter.ServeHTTP(w, req)
	default:
		http.Error(w, "unexpected "+req.URL.String(), http.StatusTeapot)
	}
}

func (r *routerServer) event(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, name)
}

func (r *routerServer) config() agentkit.Config {
	return agentkit.Config{
		AgentID: "word_counter", RouterURL: r.server.URL, Client: r.server.Client(),
		Registration: contract.Registration{Instance: "i1"},
	}
}

// sendWhenRegistered sends a task to the agent that registers, prints the answer and stops the
// agent.
func (r *routerServer) sendWhenRegistered(prompt string, stop func()) {
	defer stop()
	res, err := r.sendTask((<-r.registered).Endpoint.URL, prompt)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(res.Text())
}

// sendTask sends a task to the agent and returns the answer.
func (r *routerServer) sendTask(url, prompt string) (contract.Result, error) {
	var res contract.Result
	task := validTask().with("inputs", object{"prompt": prompt})
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(task.json()))
	if err != nil {
		return res, err
	}
	req.Header.Set("Authorization", "Bearer "+r.token(validClaims()))
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.server.Client().Do(req)
	if err != nil {
		return res, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return res, fmt.Errorf("got status %s", resp.Status)
	}
	err = json.NewDecoder(resp.Body).Decode(&res)
	return res, err
}

// The router acknowledges the drain while the agent still accepts tasks. Then the listener is
// closed, the tasks in progress end, and the agent deregisters last.
func TestRun_StopsGracefully(t *testing.T) {
	r := newRouterServer()
	defer r.server.Close()
	started, finish := make(chan struct{}, 1), make(chan struct{})
	work := func(context.Context, contract.Task) (contract.Result, error) {
		started <- struct{}{}
		<-finish
		r.event("task done")
		return agentkit.Answer("done"), nil
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- agentkit.Run(ctx, r.config(), work) }()
	url := testkit.Receive(t, r.registered).Endpoint.URL
	if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasSuffix(url, "/") || strings.Contains(url, ":0/") {
		t.Fatalf("got URL %q registered, want the actual port", url)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	accepts := func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	}
	acceptedAtDrain := make(chan bool, 1)
	r.onDrain = func() { acceptedAtDrain <- accepts() }

	answered := make(chan contract.Result, 1)
	go func() {
		res, err := r.sendTask(url, "one")
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	testkit.Receive(t, started)
	stop()
	if !testkit.Receive(t, acceptedAtDrain) {
		t.Error("got the listener closed before the router acknowledged the drain")
	}
	testkit.Eventually(t, "the listener is closed", func() bool { return !accepts() })
	close(finish)
	if res := testkit.Receive(t, answered); res.Text() != "done" {
		t.Errorf("got result %+v of the task in progress, want done", res)
	}
	if err := testkit.Receive(t, ended); err != nil {
		t.Errorf("Run = %v", err)
	}
	if diff := cmp.Diff([]string{"drain", "task done", "deregister"}, r.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The response to the task is a failure, not a broken connection.
func TestRun_CancelsTasksAfterDrainTimeout(t *testing.T) {
	r := newRouterServer()
	defer r.server.Close()
	started := make(chan struct{}, 1)
	cfg := r.config()
	cfg.DrainTimeout = 50 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- agentkit.Run(ctx, cfg, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
			started <- struct{}{}
			<-ctx.Done()
			return contract.Result{}, ctx.Err()
		})
	}()
	url := testkit.Receive(t, r.registered).Endpoint.URL
	answered := make(chan contract.Result, 1)
	go func() {
		res, err := r.sendTask(url, "one")
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	testkit.Receive(t, started)
	stop()
	if res := testkit.Receive(t, answered); res.Status != contract.ResultFailure {
		t.Errorf("got result %+v, want a failure", res)
	}
	if err := testkit.Receive(t, ended); err == nil || !strings.Contains(err.Error(), "still in progress") {
		t.Errorf("Run: got %v, want an error about the tasks", err)
	}
	if diff := cmp.Diff([]string{"drain", "deregister"}, r.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestRun_AdvertisesURL(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*agentkit.Config)
		check  func(url string) bool
	}{
		"with a path": {
			func(c *agentkit.Config) { c.Path = "tasks" },
			func(url string) bool {
				return strings.HasPrefix(url, "http://127.0.0.1:") && strings.HasSuffix(url, "/tasks")
			},
		},
		"configured": {
			func(c *agentkit.Config) {
				c.Listen, c.Registration.Endpoint.URL = ":0", "https://agent.example/"
			},
			func(url string) bool { return url == "https://agent.example/" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRouterServer()
			defer r.server.Close()
			cfg := r.config()
			tc.change(&cfg)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- agentkit.Run(ctx, cfg, countWords) }()
			if url := testkit.Receive(t, r.registered).Endpoint.URL; !tc.check(url) {
				t.Errorf("got URL %q registered", url)
			}
			stop()
			if err := testkit.Receive(t, ended); err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
}

func TestRun_ReportsErrors(t *testing.T) {
	rejecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"title":"The caller is not authorized","status":403,"detail":"no grant"}`)
	}))
	defer rejecting.Close()
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	for name, tc := range map[string]struct {
		change func(*agentkit.Config)
		want   string
	}{
		"no router":              {func(c *agentkit.Config) { c.JWKSURL, c.RouterURL = c.RouterURL, "" }, "RouterURL"},
		"invalid id":             {func(c *agentkit.Config) { c.AgentID = "" }, "AgentID"},
		"address in use":         {func(c *agentkit.Config) { c.Listen = used.Addr().String() }, used.Addr().String()},
		"all addresses":          {func(c *agentkit.Config) { c.Listen = "0.0.0.0:0" }, "Endpoint.URL"},
		"all addresses, no host": {func(c *agentkit.Config) { c.Listen = ":0" }, "Endpoint.URL"},
		"registration rejected":  {func(*agentkit.Config) {}, "The caller is not authorized (403): no grant"},
		"missing token file":     {func(c *agentkit.Config) { c.Token = agentkit.TokenFile("/nonexistent") }, "/nonexistent"},
		"missing token variable": {func(c *agentkit.Config) { c.Token = agentkit.TokenEnv("AGENTKIT_TEST_NONE") }, "AGENTKIT_TEST_NONE"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := agentkit.Config{AgentID: "word_counter", RouterURL: rejecting.URL, Client: rejecting.Client()}
			tc.change(&cfg)
			if err := agentkit.Run(t.Context(), cfg, countWords); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run: got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// If the server fails, the agent deregisters and Run returns the error.
func TestRun_StopsIfServerFails(t *testing.T) {
	r := newRouterServer()
	defer r.server.Close()
	var log bytes.Buffer
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, nil, &log, countWords, func(c *agentkit.Config) {
		*c = r.config()
		c.Registration.Endpoint.URL = "http://" + listener.Addr().String()
	})
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(t.Context(), listener) }()
	testkit.Receive(t, r.registered)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, ended); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Serve: got %v, want the error of the listener", err)
	}
	if diff := cmp.Diff([]string{"drain", "deregister"}, r.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
