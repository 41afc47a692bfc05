package egress_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakenet"
)

// target is one line of a list of addresses that attackers try.
type target struct {
	Class  string `json:"class"`
	URL    string `json:"url"`
	Expect string `json:"expect"`
}

func readTargets(t *testing.T) (list []target) {
	t.Helper()
	f, err := os.Open(testkit.Shared(t, "corpora", "own-lists", "ssrf_targets.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line target
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Expect != "refuse" {
			t.Fatalf("%+v: unknown expectation", line)
		}
		line.URL, _, _ = strings.Cut(line.URL, " (") // a remark
		if line.Class != "redirect" {                // see TestClient_DoesNotFollowRedirects
			list = append(list, line)
		}
	}
	if len(list) < 50 {
		t.Fatalf("got %d lines, want the whole list", len(list))
	}
	return list
}

// newStandInGuard returns a guard that allows 127.0.0.2 in place of a public address.
func newStandInGuard() *egress.Guard { return egress.NewGuard(netip.MustParsePrefix("127.0.0.2/32")) }

// newClientTo returns a client that connects to the port whatever the URL.
func newClientTo(t *testing.T, policy egress.AddressPolicy, port string) *http.Client {
	transport := egress.NewTransport(policy)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return dial(ctx, network, net.JoinHostPort(host, port))
	}
	t.Cleanup(transport.CloseIdleConnections)
	return egress.NewClient(transport)
}

// getURL requests the URL without changing it.
func getURL(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// otherReasons maps targets that do not reach the guard to the reason why there is
// no connection to them.
var otherReasons = map[string]string{
	"http://2130706433/":                      "no name",
	"http://017700000001/":                    "no name",
	"http://0/":                               "no name",
	"http://2852039166/":                      "no name",
	"http://0251.0376.0251.0376/":             "no name",
	"http://127.0.0.1:80@example.com/":        "public",
	`http://127.0.0.1\@example.com/`:          "no URL",
	"http://example.com/%0d%0aX-Injected: 1":  "public",
	"http://example.com:22/":                  "public",
	"file:///etc/passwd":                      "no URL",
	"dict://127.0.0.1:11211/stats":            "no URL",
	"ldap://127.0.0.1/":                       "no URL",
	"http+unix://%2Fvar%2Frun%2Fdocker.sock/": "no URL",
	"data:text/plain,x":                       "no URL",
	"//169.254.169.254/":                      "no URL",
	"http:///x":                               "no URL",
	"":                                        "no URL",
	"http://exa mple.com/":                    "no URL",
}

// reasonOf maps an error to a reason of otherReasons, or "refused".
func reasonOf(err error) string {
	var (
		dns *net.DNSError
		op  *net.OpError
	)
	switch {
	case err == nil:
		return "a connection"
	case isBlocked(err):
		return "refused"
	case errors.As(err, &dns):
		return "no name"
	case errors.As(err, &op): // no server listens on 127.0.0.2
		return "public"
	}
	return "no URL"
}

func TestGuard_BlocksListedTargets(t *testing.T) {
	trap := fakenet.NewTrap(t)
	client := newClientTo(t, newStandInGuard(), trap.Port)
	for _, target := range readTargets(t) {
		want, ok := otherReasons[target.URL]
		if !ok {
			want = "refused"
		}
		if err := getURL(t.Context(), client, target.URL); reasonOf(err) != want {
			t.Errorf("%s %q: got %v (%s), want %s", target.Class, target.URL, err, reasonOf(err), want)
		}
		if n := trap.Caught(t); n != 0 {
			t.Fatalf("%s %q: got %d connections, want none", target.Class, target.URL, n)
		}
	}
}

// TestTrap_IsReachedWithoutGuard verifies that the trap of the other tests counts
// connections.
func TestTrap_IsReachedWithoutGuard(t *testing.T) {
	trap := fakenet.NewTrap(t)
	client := newClientTo(t, egress.Unrestricted{}, trap.Port)
	for i, url := range []string{
		"http://127.0.0.1/task", "http://0.0.0.0/task", "http://[::ffff:127.0.0.1]/task", "http://0x7f.0.0.1/", "http://127。0。0。1/",
		"http://127.0.0.1.nip.io/", "http://rebind.test/", "http://example.com@127.0.0.1/", "http://127.0.0.1#@example.com/", "http://:80/",
	} {
		// The trap closes the connection.
		if err := getURL(t.Context(), client, url); reasonOf(err) == "refused" || trap.Caught(t) <= i {
			t.Fatalf("%s: got %v and %d connections, want one more than %d", url, err, trap.Caught(t), i)
		}
	}
}

// TestGuard_BlocksRebinding: the guard checks the address of the connection, not the
// result of an earlier lookup. Public addresses end with errPassed.
func TestGuard_BlocksRebinding(t *testing.T) {
	errPassed := errors.New("let through")
	guard := egress.NewGuard()
	trap := fakenet.NewTrap(t)
	dns := fakenet.NewNames(nil)
	dialer := net.Dialer{Resolver: dns.Resolver(), ControlContext: func(_ context.Context, network, address string, conn syscall.RawConn) error {
		if err := guard.Control(network, address, conn); err != nil {
			return err
		}
		return errPassed
	}}
	const public, inside = "93.184.215.14", "127.0.0.1"
	seen := map[string]int{}
	for round := range 200 {
		for _, answers := range [][]string{{public}, {inside}, {inside, public}, {public, inside}, {"::1", public}, {"2606:4700::1111", inside}} {
			dns.Set("rebind.test", answers...)
			conn, err := dialer.DialContext(t.Context(), "tcp", "rebind.test:"+trap.Port)
			switch {
			case err == nil:
				_ = conn.Close()
				t.Fatalf("round %d, %v: got a connection, want none", round, answers)
			case isBlocked(err):
				seen["refused"]++
			case errors.Is(err, errPassed):
				seen["passed"]++
			default:
				t.Fatalf("round %d, %v: %v", round, answers, err)
			}
		}
	}
	if seen["refused"] < 200 || seen["passed"] < 200 {
		t.Errorf("got %v, want both in every round", seen)
	}
	if n := trap.Caught(t); n != 0 {
		t.Errorf("got %d connections, want none", n)
	}
}

// TestGuard_BlocksRebindingDuringDial changes the address of a name while it is
// dialled.
func TestGuard_BlocksRebindingDuringDial(t *testing.T) {
	trap := fakenet.NewTrap(t)
	dns := fakenet.NewNames(map[string][]string{"rebind.test": {"127.0.0.2"}})
	dialer := net.Dialer{Resolver: dns.Resolver(), Control: newStandInGuard().Control}
	dialled := make(chan struct{})
	var flips, dials sync.WaitGroup
	flips.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-dialled:
				return
			default:
				dns.Set("rebind.test", "127.0.0."+strconv.Itoa(1+i%2))
			}
		}
	})
	for range 8 {
		dials.Go(func() {
			for range 100 {
				if conn, err := dialer.DialContext(t.Context(), "tcp", "rebind.test:"+trap.Port); err == nil {
					_ = conn.Close()
					t.Error("got a connection, want none")
				}
			}
		})
	}
	dials.Wait()
	close(dialled)
	flips.Wait()
	if n := trap.Caught(t); n != 0 {
		t.Errorf("got %d connections, want none", n)
	}
}
