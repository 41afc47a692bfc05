package restclient

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/run"
)

// newFixedClient returns a client of a server with a fixed response.
func newFixedClient(t *testing.T, status int, contentType, body string) *Client {
	t.Helper()
	return newTestClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// newTestClient returns a client of a server that leaves no goroutine behind.
func newTestClient(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	leaked := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaked) })
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
)

func TestClient_AdvisesAboutProblem(t *testing.T) {
	const (
		noToken  = `{"title":"Authentication is required","status":401,"code":"unauthenticated","detail":"a token is needed"}`
		expired  = `{"title":"Authentication is required","status":401,"code":"unauthenticated","detail":"the token has expired"}`
		nothing  = `{"title":"Not found","status":404,"code":"not_found","detail":"there is nothing at this path"}`
		noTicket = `{"title":"Not found","status":404,"code":"not_found","detail":"there is no such ticket"}`
	)
	tests := []struct {
		name, path, token, body string
		status                  int
		want                    string
	}{
		{"no token", "", "", noToken, 401, "unauthenticated: a token is needed; name the variable that holds a token with --token-env (caprouter token makes one)"},
		{"expired token", "", "t", expired, 401, "unauthenticated: the token has expired; put another token into the variable of --token-env (caprouter token makes one)"},
		{"URL of an operation", "/api/v1/route", "", nothing, 404, "not_found: there is nothing at this path; --url is the address of the router alone: leave out /api/v1/route unless a proxy adds it"},
		{"wrong id", "", "", noTicket, 404, "not_found: there is no such ticket"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newFixedClient(t, tt.status, typeProblem, tt.body)
			c.base, c.token = c.base.JoinPath(tt.path), tt.token
			_, err := c.RouteRequest(t.Context(), &contract.Request{})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestClient_NamesUntrustedCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake
	server.StartTLS()
	defer server.Close()
	c, err := New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.RouteRequest(t.Context(), &contract.Request{})
	want := "the certificate of " + server.URL + " is not trusted: x509: certificate signed by unknown authority; SSL_CERT_FILE names a file with the certificates to trust"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestClient_AdvisesHTTPS(t *testing.T) {
	t.Parallel()
	answering := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(answering.Close)
	closing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	group := run.New(t.Context())
	group.Go("close connections", func(context.Context) error {
		for {
			conn, err := closing.Accept()
			if err != nil {
				return nil //nolint:nilerr // the listener was closed
			}
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = closing.Close()
		group.Stop(nil)
		_ = group.Wait()
	})
	for _, addr := range []string{answering.Listener.Addr().String(), closing.Addr().String()} {
		c, err := New("http://"+addr, "")
		if err != nil {
			t.Fatal(err)
		}
		err = c.GetResource(t.Context(), "/readyz", nil, nil)
		if err == nil || !strings.Contains(err.Error(), "the URL begins with https://") {
			t.Errorf("got %v, want the advice to use https", err)
		}
	}
}

// net/http reports a connection that ends at once in several ways, by chance.
func TestClient_ConnectionErrorAdvisesHTTPS(t *testing.T) {
	t.Parallel()
	c, err := New("http://127.0.0.1:1", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{io.EOF, syscall.ECONNRESET, errors.New("http: server closed idle connection")} {
		err := c.ConnectionError(&url.Error{Op: "Get", URL: "http://127.0.0.1:1/readyz", Err: cause})
		if !strings.Contains(err.Error(), "the URL begins with https://") {
			t.Errorf("got %v, want the advice to use https", err)
		}
	}
}

// A connection that ends without a response is no sign that no router runs: the router may have
// accepted the request, for example if it was killed.
func TestClient_ReportsConnectionThatEnds(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	c, err := New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.RouteRequest(t.Context(), &contract.Request{})
	want := server.URL + " closed the connection without a response: the request may have been accepted (EOF). If it serves TLS, the URL begins with https://"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// An unknown agent is answered with the nearest one, or with the command that lists all.
func TestClient_SuggestAgent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"agents":[{"id":"billing_agent"}]}`)
	}))
	t.Cleanup(server.Close)
	c, err := New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"biling_agent": "; did you mean billing_agent?", "spa": ": caprouter agents list lists them"} {
		if got, unknown := c.SuggestAgent(t.Context(), id); got != want || !unknown {
			t.Errorf("%s: got %q, %v, want %q", id, got, unknown, want)
		}
	}
}

func TestClient_RouteRequest(t *testing.T) {
	tests := []struct {
		name, contentType, body string
		status                  int
		want                    contract.Status // of the response; "" = an error
		err                     string          // part of the error
	}{
		{
			name: "completed", status: 200, contentType: typeJSON,
			body: `{"request_id":"r","trace_id":"t","status":"completed","decision":null,"tasks":[],"omitted":[],"data":{"mode":"dispatch","answer":"done"}}`,
			want: contract.StatusCompleted,
		},
		{
			name: "newer router", status: 200, contentType: typeJSON,
			body: `{"request_id":"r","trace_id":"t","status":"completed","tasks":[],"omitted":[],"data":{"mode":"dispatch"},"new_member":{}}`,
			want: contract.StatusCompleted,
		},
		{
			name: "policy B", status: 422, contentType: typeProblem,
			body: `{"title":"No agent","status":422,"code":"no_eligible_agent","outcome":"unsupported","data":{"mode":"unsupported","reason":"no_match","detail":"d","nearest":[],"accepted_intents":[],"accepted_domains":[],"examples":[]},"decision":{"decision_id":"d"}}`,
			want: contract.StatusUnsupported,
		},
		{
			name: "policy B without its decision", status: 422, contentType: typeProblem,
			body: `{"title":"No agent","status":422,"code":"no_eligible_agent"}`,
			err:  "no_eligible_agent: No agent",
		},
		{
			name: "problem with details", status: 422, contentType: typeProblem,
			body: `{"title":"Invalid","detail":"not valid","status":422,"code":"invalid_request","errors":[{"pointer":"/agent_id","detail":"is not an agent id"}]}`,
			err:  "invalid_request: not valid: /agent_id is not an agent id",
		},
		{name: "404 of another server", status: 404, contentType: "text/html", body: "<h1>", err: "404 Not Found, which is not a caprouter answer: check --url"},
		{name: "200 of another server", status: 200, contentType: "text/html", body: "<h1>", err: "answered 200 OK with something that is not a caprouter answer"},
		{name: "a redirect", status: 302, contentType: "text/html", err: "302 Found, which is not a caprouter answer: check --url"},
		{name: "invalid problem", status: 500, contentType: typeProblem, body: "{", err: "answered 500 Internal Server Error with something"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newFixedClient(t, tt.status, tt.contentType, tt.body)
			resp, err := c.RouteRequest(t.Context(), &contract.Request{Content: contract.Content{Prompt: "p"}})
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want %q in it", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if resp.Status != tt.want {
				t.Errorf("got status %s, want %s", resp.Status, tt.want)
			}
		})
	}
}

func TestClient_SendsRequest(t *testing.T) {
	type sent struct{ Method, Path, Type, Authorization, Body string }
	var got sent
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = sent{r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(body)}
		w.Header().Set("Content-Type", typeJSON)
		_, _ = io.WriteString(w, `{"status":"completed"}`)
	})
	c.token = "secret"
	c.base = c.base.JoinPath("prefix/")
	if _, err := c.RouteRequest(t.Context(), &contract.Request{Content: contract.Content{Prompt: "olá"}}); err != nil {
		t.Fatal(err)
	}
	want := sent{http.MethodPost, "/prefix/api/v1/route", typeJSON, "Bearer secret", `{"content":{"prompt":"olá"}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestClient_DoesNotFollowRedirects(t *testing.T) {
	called := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer elsewhere.Close()
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.RouteRequest(t.Context(), &contract.Request{}); err == nil || called {
		t.Errorf("got error %v and a call of the target %v, want an error and no call", err, called)
	}
}

// The proxy of the environment would see the token. net/http reads the environment once per
// process, so the test checks the configuration of the transport.
func TestClient_UsesNoProxy(t *testing.T) {
	c, err := New("http://127.0.0.1:8080", "")
	if err != nil {
		t.Fatal(err)
	}
	if transport, ok := c.http.Transport.(*http.Transport); !ok || transport.Proxy != nil {
		t.Errorf("got transport %T, which may use a proxy", c.http.Transport)
	}
}

func TestClient_ReportsInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := newTestClient(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only after the body does the server notice the disconnect
		cancel()
		<-r.Context().Done()
	})
	if _, err := c.RouteRequest(ctx, &contract.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestNewClient(t *testing.T) {
	t.Setenv("TOKEN", "t")
	t.Setenv("EMPTY", "")
	tests := []struct {
		name, url, tokenEnv string
		err                 string
		usage               bool
	}{
		{name: "http on loopback", url: "http://127.0.0.1:8080", tokenEnv: "TOKEN"},
		{name: "http on IPv6 loopback", url: "http://[::1]:8080", tokenEnv: "TOKEN"},
		{name: "localhost", url: "http://localhost:8080", tokenEnv: "TOKEN"},
		{name: "https on another host", url: "https://router.example", tokenEnv: "TOKEN"},
		{name: "http on another host without a token", url: "http://router.example"},
		{name: "token in clear text", url: "http://router.example", tokenEnv: "TOKEN", err: "in clear text"},
		{name: "unset token", url: "https://router.example", tokenEnv: "EMPTY", err: "environment variable EMPTY is not set"},
		{name: "token in place of the name", url: "https://router.example", tokenEnv: "eyJhbGciOiJFZERTQSJ9.e30.c2ln", err: "--token-env takes the name", usage: true},
		{name: "token that is a valid name", url: "https://router.example", tokenEnv: "sk_live_4eC39HqLyjWDarjtT1zdp7dc", err: "--token-env takes the name", usage: true},
		{name: "long token in capitals", url: "https://router.example", tokenEnv: strings.Repeat("AKIA0", 10), err: "--token-env takes the name", usage: true},
		{name: "no scheme", url: "127.0.0.1:8080", err: "not an absolute", usage: true},
		{name: "no host", url: "http://", err: "not an absolute", usage: true},
		{name: "other scheme", url: "unix:///run/caprouter", err: "not an absolute", usage: true},
		{name: "password", url: "http://a:b@127.0.0.1", err: "must not hold", usage: true},
		{name: "query", url: "http://127.0.0.1?x", err: "without ? and #", usage: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.url, tt.tokenEnv)
			if tt.err == "" {
				if err != nil {
					t.Fatalf("got %v, want no error", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got %v, want %q in it", err, tt.err)
			}
			if tt.tokenEnv != "TOKEN" && tt.tokenEnv != "EMPTY" && tt.tokenEnv != "" && strings.Contains(err.Error(), tt.tokenEnv) {
				t.Errorf("got %v, want no argument in it", err)
			}
			if got := errors.As(err, new(cmdline.UsageError)); got != tt.usage {
				t.Errorf("got usage error %v, want %v", got, tt.usage)
			}
		})
	}
}
