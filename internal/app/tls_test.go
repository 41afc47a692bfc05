package app

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
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

// certify writes a certificate for loopback and its key, and returns it.
func certify(t *testing.T, cfg config.TLS, serial int64, until time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "tests"}, NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		cfg.CertFile: {Type: "CERTIFICATE", Bytes: der}, cfg.KeyFile: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func tlsFiles(t *testing.T) config.TLS {
	t.Helper()
	dir := t.TempDir()
	return config.TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
}

func TestServer_ServesTLS(t *testing.T) {
	t.Parallel()
	files := tlsFiles(t)
	made := certify(t, files, 1, time.Now().Add(time.Hour))
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "prose", ""), func(c *config.Config) { c.TLS = files })
	pool := x509.NewCertPool()
	pool.AddCert(made)
	ask := func(cfg *tls.Config) (*http.Response, error) {
		transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get("https://" + s.Addr() + "/healthz")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return resp, err
	}
	resp, err := ask(&tls.Config{RootCAs: pool})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("over TLS: got %v, %v", resp, err)
	}
	if resp.ProtoMajor != 2 {
		t.Errorf("HTTP/2 client: got %s", resp.Proto)
	}
	if _, err := ask(&tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		t.Error("got a TLS 1.1 connection, want an error")
	}
	if plain, err := http.Get("http://" + s.Addr() + "/healthz"); err == nil {
		plain.Body.Close()
		if plain.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP: got %d, want 400", plain.StatusCode)
		}
	}
	if got := s.core.publicURL(); got != "https://"+s.Addr() {
		t.Errorf("got callback address %s for agents", got)
	}
	// A renewed certificate is used for new connections; one that does not match its key is not.
	renewed := certify(t, files, 2, time.Now().Add(2*time.Hour))
	pool.AddCert(renewed)
	testkit.Eventually(t, "the renewed certificate is used", func() bool {
		resp, err := ask(&tls.Config{RootCAs: pool})
		return err == nil && resp.TLS.PeerCertificates[0].SerialNumber.Int64() == 2
	})
	if err := os.WriteFile(files.CertFile, []byte("half a certif"), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the log contains the error", func() bool { return strings.Contains(s.log.String(), "keys cannot be reloaded") })
	if resp, err := ask(&tls.Config{RootCAs: pool}); err != nil || resp.TLS.PeerCertificates[0].SerialNumber.Int64() != 2 {
		t.Errorf("invalid file: got error %v, want the connection kept", err)
	}
}

func TestCertificate_RejectsInvalidPairs(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, files config.TLS)
		want   string
	}{
		{"no certificate", func(t *testing.T, f config.TLS) { remove(t, f.CertFile) }, "no such file"},
		{"no key", func(t *testing.T, f config.TLS) { remove(t, f.KeyFile) }, "no such file"},
		{"key readable by all", func(t *testing.T, f config.TLS) { mode(t, f.KeyFile, 0o644) }, "is accessible to all users (mode 0644): chmod o="},
		{"key of another certificate", func(t *testing.T, f config.TLS) {
			kept, err := os.ReadFile(f.CertFile)
			if err != nil {
				t.Fatal(err)
			}
			certify(t, f, 3, time.Now().Add(time.Hour))
			if err := os.WriteFile(f.CertFile, bytes.Clone(kept), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "are not a certificate and its key"},
		{"expired", func(t *testing.T, f config.TLS) { certify(t, f, 4, time.Now().Add(-48*time.Hour)) }, "has expired on "},
		{"from the future", func(t *testing.T, f config.TLS) { certify(t, f, 5, time.Now().Add(72*time.Hour)) }, "is this machine's clock right?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := tlsFiles(t)
			certify(t, files, 1, time.Now().Add(time.Hour))
			tc.change(t, files)
			if _, err := openCertificate(files); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tc.want)
			}
		})
	}
}

// The expiry of a certificate is reported while the server runs.
func TestCertificate_ReportsExpiry(t *testing.T) {
	files := tlsFiles(t)
	made := certify(t, files, 1, time.Now().Add(time.Hour))
	c, err := openCertificate(files)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := c.reloadFiles(); changed || err != nil {
		t.Errorf("reload of the same files: got %t, %v", changed, err)
	}
	if err := c.checkExpiry(made.NotAfter); err != nil {
		t.Errorf("at its end: got %v", err)
	}
	if err := c.checkExpiry(made.NotAfter.Add(time.Second)); err == nil || !strings.Contains(err.Error(), "has expired on") {
		t.Errorf("after its end: got %v", err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func mode(t *testing.T, path string, m os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, m); err != nil {
		t.Fatal(err)
	}
}
