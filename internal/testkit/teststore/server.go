package teststore

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/caprouter/caprouter/internal/store"
)

const startTimeout = time.Minute

// maxStore is the limit of a server. By default it is three quarters of the free space of
// the disk, and several routers reserve 10 GiB each.
const maxStore = 1 << 40

// Server is a NATS server on a loopback port, as an operator runs it for an external store.
type Server struct {
	URL string

	server *server.Server
	dir    string
	port   int
}

// Serve starts a server with its files in dir. Port -1 chooses a free one; a test that
// restarts the server gets one from testkit.FreePort. The server is stopped at the end
// of the test.
func Serve(t testing.TB, dir string, port int) *Server {
	t.Helper()
	s := &Server{server: serve(t, dir, port), dir: dir, port: port}
	s.URL = s.server.ClientURL()
	t.Cleanup(s.Stop)
	return s
}

func serve(t testing.TB, dir string, port int) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, JetStreamMaxStore: maxStore, StoreDir: dir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) {
		t.Fatal("got no start of the server within its timeout")
	}
	return srv
}

// StartAgain starts a stopped server on its directory, and on its port if that was chosen
// by the caller.
func (s *Server) StartAgain(t testing.TB) {
	t.Helper()
	s.server = serve(t, s.dir, s.port)
}

// Stop stops the server. Its clients try to connect again until it is started on the
// same port.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// ServeCluster runs three servers that form a cluster, and returns their URLs. They are
// stopped at the end of the test.
func ServeCluster(t testing.TB) string {
	t.Helper()
	var routes []*url.URL
	var listeners []net.Listener
	for range 3 {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, listener)
		routes = append(routes, &url.URL{Scheme: "nats", Host: listener.Addr().String()})
	}
	var urls []string
	for i, listener := range listeners {
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil { // a server needs the ports of the others before they start
			t.Fatal(err)
		}
		srv, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i+1), Host: "127.0.0.1", Port: -1, JetStream: true, JetStreamMaxStore: maxStore, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}, Routes: routes,
		})
		if err != nil {
			t.Fatal(err)
		}
		srv.Start()
		t.Cleanup(func() {
			srv.Shutdown()
			srv.WaitForShutdown()
		})
		if !srv.ReadyForConnections(startTimeout) {
			t.Fatal("the server does not start")
		}
		urls = append(urls, srv.ClientURL())
	}
	return strings.Join(urls, ",")
}

// OpenShared opens the store at a server, as one of several processes, and closes it
// at the end of the test.
func OpenShared(t testing.TB, srv *Server, owner string) *store.Store {
	t.Helper()
	s, err := store.Open(context.WithoutCancel(t.Context()), store.Config{URL: srv.URL, Owner: owner})
	if err != nil {
		t.Fatalf("open the store at %s: %v", srv.URL, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the test's store: %v", err)
		}
	})
	return s
}
