package app

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// An incomplete request body is answered when the server stops, and does not delay the shutdown.
func TestServer_EndsIncompleteUploadsAtShutdown(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := startOnce(ctx, t, "clients: {}\n", func(c *config.Config) { c.DataDir = t.TempDir() })
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /api/v1/route HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n", s.Addr()); err != nil {
		t.Fatal(err)
	}
	replies := bufio.NewReader(conn)
	if line, err := replies.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q, %v, want the server to read the body", line, err)
	}
	if _, err := conn.Write([]byte(`{"content":`)); err != nil {
		t.Fatal(err)
	}
	_, _ = replies.ReadString('\n')
	stop()
	answer := make(chan string, 1)
	go func() {
		line, _ := replies.ReadString('\n')
		answer <- line
	}()
	if got := testkit.Receive(t, answer); !strings.Contains(got, "503") {
		t.Errorf("got response %q, want a 503", got)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	if log := s.log.String(); strings.Contains(log, "cancel requests to stop") {
		t.Errorf("got a shutdown that waited for the upload:\n%s", log)
	}
}

// Over TLS 1.2 only suites with authenticated encryption are supported, and browsers are instructed
// to use TLS only.
func TestServer_HardensTLS(t *testing.T) {
	files := tlsFiles(t)
	made := certify(t, files, 1, time.Now().Add(time.Hour))
	s := startServer(t, "clients: {}\n", func(c *config.Config) { c.TLS = files })
	pool := x509.NewCertPool()
	pool.AddCert(made)
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if strings.Contains(suite.Name, "_RSA_") || suite.SupportedVersions[0] > tls.VersionTLS12 { // the certificate has an ECDSA key
			continue
		}
		conn, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}})
		if err == nil {
			conn.Close()
		}
		if want := strings.Contains(suite.Name, "GCM") || strings.Contains(suite.Name, "POLY1305"); (err == nil) != want {
			t.Errorf("%s: got %v, want it supported: %v", suite.Name, err, want)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + s.Addr() + "/api/v1/agents")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Strict-Transport-Security"); !strings.HasPrefix(got, "max-age=31536000") {
		t.Errorf("got Strict-Transport-Security %q, want a year", got)
	}
}

// No response may be stored by intermediaries, except for the public documents.
func TestServer_ForbidsCaching(t *testing.T) {
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "prose", ""))
	for path, want := range map[string]string{
		"/api/v1/agents": "no-store", "/api/v1/registry": "no-store", "/healthz": "no-store", "/metrics": "no-store", "/none": "no-store",
		"/.well-known/jwks.json": "public, max-age=60",
	} {
		got := s.do(call{method: "GET", path: path})
		if header := got.header["Cache-Control"]; len(header) != 1 || header[0] != want {
			t.Errorf("%s: got Cache-Control %q, want %q", path, header, want)
		}
		if hsts := got.header.Get("Strict-Transport-Security"); hsts != "" {
			t.Errorf("%s: got Strict-Transport-Security %q over plain HTTP, want none", path, hsts)
		}
	}
}

// A key with an issuer is valid for tokens of that issuer only.
func TestServer_RestrictsKeyToItsIssuer(t *testing.T) {
	m := newTokenIssuer()
	s := startGuarded(t, m, "clients: {}\n", func(c *config.Config) { c.Auth.Keys[0].Issuer = "https://ci.example" })
	for issuer, want := range map[string]int{"https://ci.example": 200, "tests": 401, "caprouter": 401, "https://ci.example/": 401} {
		got := s.do(call{method: "GET", path: "/api/v1/agents", token: m.token("alice", everyScope, map[string]any{"iss": issuer})})
		if got.status != want {
			t.Errorf("issuer %s: got %d %s, want %d", issuer, got.status, got.body, want)
		}
	}
}

// A sentence is not a secret: the router does not start with one.
func TestStart_RejectsSentenceAsSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("my grandmother has three cats and a very old garden"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.DataDir, cfg.Listen, cfg.Auth.Mode = t.TempDir(), "127.0.0.1:0", config.AuthJWT
	cfg.Auth.Keys = []config.Key{{KID: "ci", Alg: "HS256", SecretFile: file}}
	_, err := Start(t.Context(), cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
	if err == nil || !strings.Contains(err.Error(), "made of words") || !strings.Contains(err.Error(), "openssl rand") || strings.Contains(err.Error(), "grandmother") {
		t.Errorf("got %v, want an error about the words, with the command that creates a secret", err)
	}
}
