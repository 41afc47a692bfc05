package httptarget_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakenet"
)

// names is the DNS of all tests of this file. 127.0.0.2 is used as a public address, with a guard
// that allows it.
var names = fakenet.NewNames(map[string][]string{
	"example.com":              {"127.0.0.2"},
	"localhost.localdomain":    {"127.0.0.1", "::1"},
	"127.0.0.1.nip.io":         {"127.0.0.1"},
	"0x7f.0.0.1":               {"127.0.0.1"},
	"metadata.google.internal": {"169.254.169.254"},
	"instance-data":            {"169.254.169.254"},
	"host.docker.internal":     {"172.17.0.1"},
})

const barred = "quality_agent could not be reached: its address may not be called"

func registered(c *dispatch.Call) { c.Agent.Origin = contract.OriginRegistration }

// allowRanges configures a guard that allows the ranges.
func allowRanges(ranges ...string) func(*httptarget.Config) {
	var prefixes []netip.Prefix
	for _, s := range ranges {
		prefixes = append(prefixes, netip.MustParsePrefix(s))
	}
	return func(c *httptarget.Config) { c.Guard = egress.NewGuard(prefixes...) }
}

func plainHTTP(c *httptarget.Config) { c.AllowPlainHTTP = true }

// untrustedURLs returns the untrusted addresses, with the given port.
func untrustedURLs(t *testing.T, port string) (urls []string) {
	t.Helper()
	f, err := os.Open(testkit.Shared(t, "corpora", "own-lists", "ssrf_targets.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct{ Class, URL string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Class != "redirect" {
			raw, _, _ := strings.Cut(line.URL, " (") // without the comment
			urls = append(urls, withPort(raw, port))
		}
	}
	return urls
}

func withPort(raw, port string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return raw
	}
	return strings.Replace(raw, u.Host, strings.TrimSuffix(u.Host, ":"+u.Port())+":"+port, 1)
}

// No listed address is called, neither before or for a task nor for a cancellation, and the
// error for the caller does not contain the reason.
func TestGuard_BlocksUntrustedTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		change []func(*httptarget.Config)
		// by host: passes the address check and fails in the dialer
		dialled map[string]string
	}{
		"default": {nil, map[string]string{}},
		"plain HTTP allowed": {[]func(*httptarget.Config){plainHTTP}, map[string]string{
			"example.com": "connection refused", "2130706433": "resolved", "017700000001": "resolved", "0": "resolved",
			"2852039166": "resolved", "0251.0376.0251.0376": "resolved",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			trap := fakenet.NewTrap(t)
			names.Set("rebind.test", "127.0.0.1")
			target := newTarget(t, append(tc.change, allowRanges("127.0.0.2/32"))...)
			for _, raw := range untrustedURLs(t, trap.Port) {
				c := newCall(raw, registered)
				got := execute(t, target, prepare(t, target, c))
				target.CancelTask(c)
				if got.Err == nil || got.Err.Code != contract.TaskAgentUnavailable || got.MayHaveExecuted || got.Pending {
					t.Errorf("%q: got %+v, want the agent unavailable", raw, got)
					continue
				}
				var want string
				if u, err := url.Parse(raw); err == nil && u.User == nil && u.Scheme == "http" && !strings.Contains(raw, "%0d") {
					want = tc.dialled[u.Hostname()]
				}
				if want == "" && got.Attempts > 1 || !strings.Contains(got.Err.Detail, want) {
					t.Errorf("%q: got %q after %d attempts, want it blocked (%s)", raw, got.Err.Detail, got.Attempts, want)
				}
				if strings.Contains(got.Err.Detail, "127.") || strings.Contains(got.Err.Detail, "169.254") {
					t.Errorf("%q: got detail %q, want no address in it", raw, got.Err.Detail)
				}
			}
			target.Close()
			if n := trap.Caught(t); n != 0 {
				t.Errorf("got %d connections, want none", n)
			}
		})
	}
}

// The same addresses are called if they are in the registry file. This shows that a server exists
// that the guard protects.
func TestGuard_TrustsRegistryFile(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	target := newTarget(t, plainHTTP, allowRanges())
	_, port, _ := net.SplitHostPort(a.Listener.Addr().String())
	names.Set("rebind.test", "127.0.0.1")
	// A literal address is checked directly, a name after its resolution.
	for host, attempts := range map[string]int{"127.0.0.1": 0, "0.0.0.0": 0, "[::ffff:127.0.0.1]": 0, "127.0.0.1.nip.io": 1, "rebind.test": 1} {
		c := newCall("http://" + host + ":" + port + "/tasks")
		checkOutcome(t, execute(t, target, c), want{attempts: 1, health: dispatch.HealthGood})
		registered(&c)
		checkOutcome(t, execute(t, target, c), want{code: contract.TaskAgentUnavailable, detail: barred, attempts: attempts, health: dispatch.HealthBad})
	}
	if got := len(a.received()); got != 5 {
		t.Errorf("got %d tasks, want those of the agents in the file", got)
	}
}

// Without a guard, or with an unknown origin, no agent is called.
func TestGuard_IsRequiredForRegisteredAgents(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	target := newTarget(t)
	refusedAsItStands := want{code: contract.TaskAgentUnavailable, detail: barred, health: dispatch.HealthBad}
	checkOutcome(t, execute(t, target, newCall(a.URL, registered)), refusedAsItStands)
	checkOutcome(t, execute(t, target, newCall(a.URL, func(c *dispatch.Call) { c.Agent.Origin = "elsewhere" })), refusedAsItStands)
	target.CancelTask(newCall(a.URL, registered))
	target.Close()
	if len(a.received())+len(a.stopped()) != 0 {
		t.Error("got a call of the agent, want none")
	}
}

func TestGuard_AllowsConfiguredRange(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	for allowed, w := range map[string]want{
		"127.0.0.1/32": {attempts: 1, health: dispatch.HealthGood},
		"127.0.0.0/8":  {attempts: 1, health: dispatch.HealthGood},
		"127.0.0.2/32": {code: contract.TaskAgentUnavailable, detail: barred, health: dispatch.HealthBad},
		"10.0.0.0/8":   {code: contract.TaskAgentUnavailable, detail: barred, health: dispatch.HealthBad},
	} {
		checkOutcome(t, execute(t, newTarget(t, allowRanges(allowed)), newCall(a.URL, registered)), w)
	}
}

// If two agents register the same address, they do not share connections.
func TestGuard_SeparatesConnections(t *testing.T) {
	var connections atomic.Int64
	a := httptest.NewUnstartedServer(answering(http.StatusOK, successBody))
	a.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	a.Start()
	defer a.Close()
	fine := want{attempts: 1, health: dispatch.HealthGood}
	target := newTarget(t, allowRanges("127.0.0.0/8"))
	for range 3 {
		checkOutcome(t, execute(t, target, newCall(a.URL)), fine)
		checkOutcome(t, execute(t, target, newCall(a.URL, registered)), fine)
	}
	if got := connections.Load(); got != 2 {
		t.Errorf("got %d connections, want one for each kind of address", got)
	}
}

// listenNear listens on 127.0.0.2 at the port of the trap.
func listenNear(t *testing.T, trap *fakenet.Trap) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:"+trap.Port)
	if err != nil {
		t.Skip("127.0.0.2 is not a local address, or in use:", err)
	}
	return l
}

// The name first resolves to the agent, then to the router's own machine.
func TestGuard_BlocksDNSRebinding(t *testing.T) {
	trap := fakenet.NewTrap(t)
	a := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // so that the next task needs a new connection
		_, _ = io.WriteString(w, successBody)
	}))
	_ = a.Listener.Close()
	a.Listener = listenNear(t, trap)
	a.Start()
	defer a.Close()
	target := newTarget(t, plainHTTP, allowRanges("127.0.0.2/32"))
	c := newCall("http://rebind.test:"+trap.Port+"/tasks", registered)
	for range 50 {
		names.Set("rebind.test", "127.0.0.2")
		checkOutcome(t, execute(t, target, c), want{attempts: 1, health: dispatch.HealthGood})
		names.Set("rebind.test", "127.0.0.1", "::1")
		checkOutcome(t, execute(t, target, c), want{code: contract.TaskAgentUnavailable, detail: barred, attempts: 1, health: dispatch.HealthBad})
	}
	if n := trap.Caught(t); n != 0 {
		t.Errorf("got %d connections, want none", n)
	}
}

// The name resolves to another address when the task is cancelled.
func TestGuard_BlocksDNSRebindingOfCancel(t *testing.T) {
	trap := fakenet.NewTrap(t)
	begun := make(chan struct{})
	a := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(begun)
		<-r.Context().Done()
	}))
	_ = a.Listener.Close()
	a.Listener = listenNear(t, trap)
	a.Start()
	defer a.Close()
	target := newTarget(t, plainHTTP, allowRanges("127.0.0.2/32"))
	names.Set("rebind.test", "127.0.0.2")
	ctx, leave := context.WithCancel(t.Context())
	var got dispatch.Outcome
	var wg sync.WaitGroup
	wg.Go(func() { got = target.Execute(ctx, newCall("http://rebind.test:"+trap.Port+"/tasks", registered)) })
	testkit.WaitClosed(t, begun)
	names.Set("rebind.test", "127.0.0.1")
	leave()
	wg.Wait()
	checkOutcome(t, got, want{code: contract.TaskWasCancelled, attempts: 1, uncertain: true})
	target.Close()
	if n := trap.Caught(t); n != 0 {
		t.Errorf("got %d connections, want none", n)
	}
}

// A permitted agent cannot redirect the router to another server.
func TestGuard_FollowsNoRedirect(t *testing.T) {
	trap := fakenet.NewTrap(t)
	for _, to := range []string{"http://127.0.0.1:" + trap.Port, "http://169.254.169.254/", "file:///etc/passwd", "/again"} {
		a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		got := execute(t, newTarget(t, allowRanges("127.0.0.0/8")), newCall(a.URL, registered))
		checkOutcome(t, got, want{code: contract.TaskBadResult, detail: "redirects are not followed", attempts: 1, uncertain: true, health: dispatch.HealthBad})
		if n := len(a.received()); n != 1 {
			t.Errorf("redirect to %s: got %d tasks at the agent, want 1", to, n)
		}
	}
	if n := trap.Caught(t); n != 0 {
		t.Errorf("got %d redirects followed, want none", n)
	}
}

// 0.0.0.0 reaches this machine, and net/http does not exempt it from the proxy of
// the environment.
func TestGuard_UsesNoProxy(t *testing.T) {
	a := newAgent(t, answering(http.StatusOK, successBody))
	at := strings.Replace(a.URL, "127.0.0.1", "0.0.0.0", 1)
	proxy, err := http.ProxyFromEnvironment(httptest.NewRequest(http.MethodPost, at, http.NoBody))
	if err != nil || proxy == nil {
		t.Fatalf("environment's proxy: got %v (%v), want one", proxy, err)
	}
	target := newTarget(t, plainHTTP, allowRanges("0.0.0.0/8", "127.0.0.0/8"))
	for _, kind := range []func(*dispatch.Call){func(*dispatch.Call) {}, registered} {
		checkOutcome(t, execute(t, target, newCall(at, kind)), want{attempts: 1, health: dispatch.HealthGood})
	}
}

// The log contains the address and the setting that permits it.
func TestGuard_LogsBlockedAddress(t *testing.T) {
	var log bytes.Buffer
	names.Set("rebind.test", "10.1.2.3")
	target := newTarget(t, plainHTTP, allowRanges(), func(c *httptarget.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	execute(t, target, newCall("http://rebind.test/tasks", registered))
	if got := log.String(); !strings.Contains(got, "10.1.2.3 may not be called") || !strings.Contains(got, "dispatch.allow_private") {
		t.Errorf("log = %s", got)
	}
}
