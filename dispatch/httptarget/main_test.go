package httptarget_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/testkit/fakenet"
)

func TestMain(m *testing.M) {
	net.DefaultResolver = names.Resolver() // no DNS query leaves the machine
	// net/http reads the variable once per process. The port has no listener;
	// loopback addresses do not use a proxy.
	if err := os.Setenv("HTTP_PROXY", "http://127.0.0.1:1"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const (
	taskID      = "0195f3a0-7b1c-7000-8000-000000000001"
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
	successBody = `{"status":"success","data":{"answer":"done"}}`
)

// signer has the keys and issues the tokens of a router.
type signer struct {
	*issuance.Issuer
	keys *keyring.Ring
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	keys, err := keyring.New()
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := issuance.New(keys, jwk.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{tokens, keys}
}

// newTarget returns a Target that is closed at the end of the test.
func newTarget(t testing.TB, change ...func(*httptarget.Config)) *httptarget.Target {
	t.Helper()
	return newTargetWith(t, newSigner(t), change...)
}

func newTargetWith(t testing.TB, source httptarget.TokenSource, change ...func(*httptarget.Config)) *httptarget.Target {
	t.Helper()
	cfg := httptarget.Config{Issuer: "caprouter", Version: "1.2.3"}
	for _, c := range change {
		c(&cfg)
	}
	target, err := httptarget.New(cfg, source)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(target.Close)
	return target
}

// newCall returns a task for the agent at the URL.
func newCall(url string, change ...func(*dispatch.Call)) dispatch.Call {
	c := dispatch.Call{
		Agent: &contract.RegistryEntry{
			ID:       "quality_agent",
			Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: url},
		},
		Caller: &contract.Caller{Subject: "alice"},
		Task: contract.Task{
			TaskID: taskID, RequestID: "r1", TraceID: traceID, Intent: "code_review", Domains: []string{"python"},
			SubtaskTitle: "Review", Inputs: map[string]json.RawMessage{"prompt": json.RawMessage(`"look"`)},
		},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func idempotent(c *dispatch.Call) { c.Agent.Endpoint.Idempotent = true }

// timeout sets the agent's own timeout.
func timeout(d time.Duration) func(*dispatch.Call) {
	return func(c *dispatch.Call) { c.Agent.Endpoint.TimeoutMS = int(d.Milliseconds()) }
}

func withStandbys(n int) func(*dispatch.Call) { return func(c *dispatch.Call) { c.Standbys = n } }

// execute sends the task with a deadline that is far enough away.
func execute(t testing.TB, target *httptarget.Target, c dispatch.Call) dispatch.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return target.Execute(ctx, c)
}

// want is the expected outcome.
type want struct {
	code      contract.TaskCode // "" = a Result
	detail    string            // a substring of the detail
	attempts  int
	uncertain bool
	health    dispatch.Health
}

func checkOutcome(t testing.TB, got dispatch.Outcome, w want) {
	t.Helper()
	code, detail := contract.TaskCode(""), ""
	if got.Err != nil {
		code, detail = got.Err.Code, got.Err.Detail
	}
	if code != w.code || (got.Result != nil) != (w.code == "") || !strings.Contains(detail, w.detail) ||
		got.Attempts != w.attempts || got.MayHaveExecuted != w.uncertain || got.Health != w.health {
		t.Errorf("outcome = {code %q detail %q attempts %d uncertain %v health %d result %+v}\nwant %+v",
			code, detail, got.Attempts, got.MayHaveExecuted, got.Health, got.Result, w)
	}
	if strings.Contains(detail, "127.0.0.1") || strings.ContainsAny(detail, "\n\x1b") {
		t.Errorf("got detail %q, want one line without an address", detail)
	}
}

// agentServer is an agent that records its requests.
type agentServer struct {
	*httptest.Server
	mu    sync.Mutex
	tasks []contract.Task
	stops []string // paths of the cancellations
}

// newAgent serves tasks with the handler, which may read the body again.
func newAgent(t testing.TB, handle http.HandlerFunc) *agentServer {
	a := &agentServer{}
	a.Server = httptest.NewServer(a.record(handle))
	t.Cleanup(a.Close)
	return a
}

// network connects targets and agents in memory. Tests whose outcome depends on a
// deadline use it in a synctest bubble, so that it does not depend on the speed of the
// machine.
type network struct{ *fakenet.Memory }

func newNetwork() network { return network{fakenet.NewMemory()} }

func (n network) newTarget(t testing.TB, change ...func(*httptarget.Config)) *httptarget.Target {
	t.Helper()
	target := newTarget(t, change...)
	httptarget.DialWith(target, n.DialContext)
	return target
}

func (n network) newAgent(t testing.TB, handle http.HandlerFunc) *agentServer {
	a := &agentServer{}
	a.Server = &httptest.Server{Listener: n.Listen(), Config: &http.Server{Handler: a.record(handle), ReadHeaderTimeout: time.Hour}}
	a.Start()
	t.Cleanup(a.Close)
	return a
}

// neverAnswers starts an agent that answers no task, only cancellations, and returns
// its URL.
func (n network) neverAnswers(t testing.TB) string {
	return n.newAgent(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL
}

func (a *agentServer) record(handle http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		a.mu.Lock()
		if strings.HasSuffix(r.URL.Path, "/cancel") {
			a.stops = append(a.stops, r.URL.Path)
			a.mu.Unlock()
			w.WriteHeader(http.StatusNoContent)
			return
		}
		var task contract.Task
		_ = json.Unmarshal(body, &task)
		a.tasks = append(a.tasks, task)
		a.mu.Unlock()
		handle(w, r)
	})
}

func (a *agentServer) received() []contract.Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]contract.Task(nil), a.tasks...)
}

func (a *agentServer) stopped() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.stops...)
}

// answering returns a handler with a fixed response.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// rawAgent is an agent below HTTP: handle gets each connection with its number,
// from 0, and the connection is closed when handle returns. rawAgent returns the
// URL.
func rawAgent(t testing.TB, handle func(conn net.Conn, n int)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveRaw(t, l, handle)
}

// rawAgent is like the function with this name.
func (n network) rawAgent(t testing.TB, handle func(conn net.Conn, n int)) string {
	return serveRaw(t, n.Listen(), handle)
}

func serveRaw(t testing.TB, l net.Listener, handle func(conn net.Conn, n int)) string {
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = conn.Close() }()
				handle(conn, n)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return "http://" + l.Addr().String() + "/tasks"
}

// readRequest reads one request and reports whether it was a task. Cancellations
// are not.
func readRequest(conn net.Conn) (ok bool) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || strings.HasSuffix(r.URL.Path, "/cancel") {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

// readUntilClosed reads until the other side closes the connection.
func readUntilClosed(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
