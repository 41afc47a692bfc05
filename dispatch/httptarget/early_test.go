package httptarget_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/internal/testkit"
)

// prepare prepares the task with the deadline that execute uses, and returns the call with its token.
func prepare(t testing.TB, target *httptarget.Target, c dispatch.Call) dispatch.Call {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c.Token = target.Prepare(ctx, c)
	return c
}

// countingDialer connects to a network in memory, and counts the connections.
type countingDialer struct {
	network
	dials, open atomic.Int64
	delay       time.Duration
	fail        atomic.Bool
}

func newCountingDialer() *countingDialer { return &countingDialer{network: newNetwork()} }

func (d *countingDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	d.dials.Add(1)
	select {
	case <-time.After(d.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.fail.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: context.DeadlineExceeded}
	}
	conn, err := d.network.DialContext(ctx, network, addr)
	if err == nil {
		d.open.Add(1)
		conn = &closeCounter{Conn: conn, open: &d.open}
	}
	return conn, err
}

func (d *countingDialer) newTarget(t testing.TB) *httptarget.Target {
	target := newTarget(t)
	httptarget.DialWith(target, d.DialContext)
	return target
}

type closeCounter struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *closeCounter) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// A task that was prepared uses the connection that was opened then, also if it is still being
// opened.
func TestTarget_OpensConnectionEarly(t *testing.T) {
	for name, wait := range map[string]time.Duration{"open": 100 * time.Millisecond, "being opened": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newCountingDialer()
				d.delay = 50 * time.Millisecond
				agent := d.newAgent(t, answering(http.StatusOK, successBody))
				target := d.newTarget(t)
				start := time.Now()
				c := prepare(t, target, newCall(agent.URL))
				if since := time.Since(start); since != 0 {
					t.Errorf("preparing took %v, want no wait for the connection", since)
				}
				<-time.After(wait)
				if n := len(agent.received()); n != 0 {
					t.Errorf("got %d tasks before Execute, want 0", n)
				}
				checkOutcome(t, execute(t, target, c), want{attempts: 1, health: dispatch.HealthGood})
				if took := time.Since(start); took != max(wait, d.delay) {
					t.Errorf("the task ended after %v, want %v: it does not wait for another connection", took, max(wait, d.delay))
				}
				if got := d.dials.Load(); got != 1 {
					t.Errorf("got %d connections, want 1", got)
				}
			})
		})
	}
}

// Each of several tasks at the same time gets a connection; later ones use those that are idle.
func TestTarget_OpensConnectionForEachTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks = 8
		d := newCountingDialer()
		agent := d.newAgent(t, answering(http.StatusOK, successBody))
		target := d.newTarget(t)
		var calls []dispatch.Call
		for range tasks {
			calls = append(calls, prepare(t, target, newCall(agent.URL)))
		}
		synctest.Wait()
		if got := d.dials.Load(); got != tasks {
			t.Errorf("got %d connections for %d tasks, want one for each", got, tasks)
		}
		var wg sync.WaitGroup
		for _, c := range calls {
			wg.Go(func() { execute(t, target, c) })
		}
		wg.Wait()
		synctest.Wait()
		execute(t, target, prepare(t, target, newCall(agent.URL)))
		if got := d.dials.Load(); got != tasks {
			t.Errorf("got %d connections after another task, want %d: it uses an idle one", got, tasks)
		}
	})
}

// A connection that no task uses is closed soon, or with the target.
func TestTarget_ClosesUnusedConnection(t *testing.T) {
	for name, end := range map[string]func(*httptarget.Target){
		"after its time": func(*httptarget.Target) { <-time.After(time.Second + time.Millisecond) },
		"by Close":       (*httptarget.Target).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newCountingDialer()
				agent := d.newAgent(t, answering(http.StatusOK, successBody))
				target := d.newTarget(t)
				c := prepare(t, target, newCall(agent.URL))
				synctest.Wait()
				if got := d.open.Load(); got != 1 {
					t.Fatalf("got %d open connections, want 1", got)
				}
				end(target)
				if got := d.open.Load(); got != 0 {
					t.Errorf("got %d open connections at the end, want 0", got)
				}
				if name == "after its time" {
					checkOutcome(t, execute(t, target, c), want{attempts: 1, health: dispatch.HealthGood})
				}
			})
		})
	}
}

// The agent may end a connection before the task can be sent, for example because it restarts.
// The task is then sent over another connection, and was sent once.
func TestTarget_ReplacesEarlyConnectionThatAgentEnds(t *testing.T) {
	trusted := httptest.NewTLSServer(http.NotFoundHandler())
	trusted.Close()
	closes := func(net.Conn) {}
	for name, tt := range map[string]struct {
		first func(conn net.Conn)
		tls   bool
	}{
		"closed":            {closes, false},
		"closed TLS":        {closes, true},
		"an answer, no end": {func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 408 Request Timeout\r\n\r\n") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newCountingDialer()
				url := d.rawAgent(t, func(conn net.Conn, n int) {
					if tt.tls {
						secured := tls.Server(conn, trusted.TLS)
						_ = secured.Handshake()
						conn = secured
					}
					if n == 0 {
						tt.first(conn)
					} else if readRequest(conn) {
						_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+successBody)
					}
					_ = conn.Close()
				})
				target := newTarget(t, func(cfg *httptarget.Config) { cfg.TLS = trusted.Client().Transport.(*http.Transport).TLSClientConfig })
				httptarget.DialWith(target, d.DialContext)
				if tt.tls {
					url = strings.Replace(url, "http:", "https:", 1)
				}
				c := prepare(t, target, newCall(url))
				synctest.Wait()
				checkOutcome(t, execute(t, target, c), want{attempts: 1, health: dispatch.HealthGood})
				if got := d.dials.Load(); got != 2 {
					t.Errorf("got %d connections, want 2", got)
				}
			})
		})
	}
}

// A connection that is still being opened for a task that was given up delays no other task.
func TestTarget_PrefersEarlyConnectionThatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newCountingDialer()
		agent := d.newAgent(t, answering(http.StatusOK, successBody))
		target := d.newTarget(t)
		d.delay = time.Hour
		prepare(t, target, newCall(agent.URL))
		synctest.Wait()
		d.delay = 0
		c := prepare(t, target, newCall(agent.URL))
		synctest.Wait()
		start := time.Now()
		checkOutcome(t, execute(t, target, c), want{attempts: 1, health: dispatch.HealthGood})
		if took := time.Since(start); took != 0 {
			t.Errorf("the task took %v, want no wait", took)
		}
	})
}

// net/http connects to the ASCII form of a host name, so a connection to another form would not be used.
func TestTarget_OpensNoEarlyConnectionToInternationalName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newCountingDialer()
		target := d.newTarget(t)
		prepare(t, target, newCall("https://münchen.test/"))
		synctest.Wait()
		if got := d.dials.Load(); got != 0 {
			t.Errorf("got %d connections, want 0", got)
		}
	})
}

// An early connection that fails does not count as an attempt.
func TestTarget_FailedEarlyConnectionIsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newCountingDialer()
		agent := d.newAgent(t, answering(http.StatusOK, successBody))
		target := d.newTarget(t)
		d.fail.Store(true)
		c := prepare(t, target, newCall(agent.URL))
		synctest.Wait()
		d.fail.Store(false)
		checkOutcome(t, execute(t, target, c), want{attempts: 1, health: dispatch.HealthGood})
		if got := d.dials.Load(); got != 2 {
			t.Errorf("got %d connections, want 2", got)
		}
	})
}

// While a connection is being opened, the deadline of the task is observed.
func TestTarget_EarlyConnectionObservesDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newCountingDialer()
		d.delay = time.Hour
		target := d.newTarget(t)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		c := newCall("http://agent.test/")
		c.Token = target.Prepare(ctx, c)
		if got := target.Execute(ctx, c); got.Err == nil || got.MayHaveExecuted {
			t.Errorf("got %+v, want a failure without a task sent", got)
		}
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("the task ended after %v, want its deadline", took)
		}
	})
}

// The TLS handshake is made early as well.
func TestTarget_OpensTLSConnectionEarly(t *testing.T) {
	var connections atomic.Int64
	agent := &agentServer{}
	agent.Server = httptest.NewUnstartedServer(agent.record(answering(http.StatusOK, successBody)))
	agent.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	agent.StartTLS()
	t.Cleanup(agent.Close)
	roots := agent.Client().Transport.(*http.Transport).TLSClientConfig
	target := newTarget(t, func(cfg *httptarget.Config) { cfg.TLS = roots })
	c := prepare(t, target, newCall(agent.URL))
	testkit.Eventually(t, "a connection is open", func() bool { return connections.Load() == 1 })
	checkOutcome(t, execute(t, target, c), want{attempts: 1, health: dispatch.HealthGood})
	if got := connections.Load(); got != 1 {
		t.Errorf("got %d connections, want 1", got)
	}
	if tasks := agent.received(); len(tasks) != 1 || tasks[0].Attempt != 1 {
		t.Errorf("got tasks %+v, want one", tasks)
	}
}
