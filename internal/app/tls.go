package app

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/config"
)

// certificate is the certificate of the server. Its files are read again if they change.
// If the new pair is not valid, the previous one remains in use.
type certificate struct {
	cfg       config.TLS
	current   atomic.Pointer[tls.Certificate]
	lastStat  [2]fs.FileInfo // of cert_file and key_file at the last read; owned by reload
	lastError error          // of the last read
}

// openCertificate reads the pair; it returns nil if none is configured.
func openCertificate(cfg config.TLS) (*certificate, error) {
	if !cfg.Enabled() {
		return nil, nil //nolint:nilnil // no certificate is no error
	}
	c := &certificate{cfg: cfg}
	if _, err := c.reloadFiles(); err != nil {
		return nil, err
	}
	return c, nil
}

// CheckTLS returns an error if the configured certificate cannot be used.
func CheckTLS(cfg config.TLS) error {
	_, err := openCertificate(cfg)
	return err
}

// tlsConfig returns the configuration of a server with the certificate; nil without one.
func (c *certificate) tlsConfig() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Of TLS 1.2 only the suites with authenticated encryption; those of TLS 1.3
		// all have it.
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}

// reloadFiles reads the files if one of them has changed. Calls must not overlap.
func (c *certificate) reloadFiles() (changed bool, err error) {
	if c == nil {
		return false, nil
	}
	var now [2]fs.FileInfo
	for i, path := range []string{c.cfg.CertFile, c.cfg.KeyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return false, fmt.Errorf("tls: %w", err)
		}
		now[i] = info
		if i == 1 {
			if err := checkPrivateMode(path, info); err != nil {
				return false, err
			}
		}
	}
	if sameFile(now[0], c.lastStat[0]) && sameFile(now[1], c.lastStat[1]) {
		return false, cmp.Or(c.lastError, c.checkExpiry(time.Now()))
	}
	c.lastStat, c.lastError = now, c.loadPair()
	return c.lastError == nil, c.lastError
}

func sameFile(a, b fs.FileInfo) bool {
	return b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// checkExpiry returns an error if the certificate in use has expired.
func (c *certificate) checkExpiry(now time.Time) error {
	if err := checkValidity(c.current.Load().Leaf, now); err != nil {
		return fmt.Errorf("tls: the certificate in %s %w", c.cfg.CertFile, err)
	}
	return nil
}

// loadPair reads the files, and uses the pair if it is valid.
func (c *certificate) loadPair() error {
	pair, err := tls.LoadX509KeyPair(c.cfg.CertFile, c.cfg.KeyFile)
	if err != nil {
		return fmt.Errorf("tls: %s and %s are not a certificate and its key: %w", c.cfg.CertFile, c.cfg.KeyFile, err)
	}
	if err := checkValidity(pair.Leaf, time.Now()); err != nil {
		return fmt.Errorf("tls: the certificate in %s %w", c.cfg.CertFile, err)
	}
	c.current.Store(&pair)
	return nil
}

func checkValidity(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("has expired on %s: renew it", leaf.NotAfter.UTC().Format(time.DateOnly))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("begins on %s: is this machine's clock right?", leaf.NotBefore.UTC().Format(time.DateOnly))
	}
	return nil
}

// checkPrivateMode refuses a private key that other users can read. Its group may read
// it, because secrets are mounted that way for the user of a service.
func checkPrivateMode(path string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o007 != 0 && runtime.GOOS != "windows" { // Windows has no such bits
		return fmt.Errorf("tls.key_file %s is accessible to all users (mode %04o): chmod o= %s", path, mode, path)
	}
	return nil
}
