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
)

// certificate is what the server proves with who it is. The files are read again
// when they change, as those who renew them expect; a pair that does not fit
// leaves the last good one in force.
type certificate struct {
	cfg       TLSConfig
	current   atomic.Pointer[tls.Certificate]
	lastStat  [2]fs.FileInfo // cert_file and key_file, as they were read; reload's
	lastError error          // with what was read then
}

// openCertificate reads the pair; nil when none is configured.
func openCertificate(cfg TLSConfig) (*certificate, error) {
	if !cfg.enabled() {
		return nil, nil //nolint:nilnil // no certificate is no error
	}
	c := &certificate{cfg: cfg}
	if _, err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// tlsConfig is that of a server with the certificate; nil for none.
func (c *certificate) tlsConfig() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}

// reload reads the files when one of them has changed. One goroutine at a time
// may call it.
func (c *certificate) reload() (changed bool, err error) {
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

// checkExpiry says that the certificate in force has ended while the server ran.
func (c *certificate) checkExpiry(now time.Time) error {
	if err := checkValidity(c.current.Load().Leaf, now); err != nil {
		return fmt.Errorf("tls: the certificate in %s %w", c.cfg.CertFile, err)
	}
	return nil
}

// loadPair takes over what is in the files now.
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

// checkPrivateMode refuses a private key that everybody on the machine can read.
// Its group may: that is how secrets are mounted for a service's user.
func checkPrivateMode(path string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o007 != 0 && runtime.GOOS != "windows" { // which has no such bits
		return fmt.Errorf("tls.key_file %s may be used by everybody (mode %04o): chmod o= %s", path, mode, path)
	}
	return nil
}
