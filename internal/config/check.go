package config

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"

	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// checkListen refuses an address without a valid port, and to serve other hosts without
// authentication.
func checkListen(listen, authMode string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen: %q is not host:port, e.g. 127.0.0.1:8080", listen)
	}
	if _, err := net.DefaultResolver.LookupPort(context.Background(), "tcp", port); err != nil { // a number, or a name such as http
		return fmt.Errorf("listen: %q has no valid port: write a number up to 65535, or 0 for a free one", listen)
	}
	if authMode == AuthNone && !egress.IsLoopback(host) {
		return fmt.Errorf("listen: %q is reachable from outside and auth.mode is none: listen on 127.0.0.1 or [::1], or set auth.mode jwt", listen)
	}
	return nil
}

// checkSampleAgent permits loopback addresses only, because the sample agent is for the
// first requests on one machine.
func checkSampleAgent(addr string) error {
	if addr == "" {
		return nil
	}
	if host, _, err := net.SplitHostPort(addr); err != nil || !egress.IsLoopback(host) {
		return fmt.Errorf("sample_agent: %q is not host:port on loopback, e.g. 127.0.0.1:9101", addr)
	}
	return nil
}

// newConfigShape returns a validator of the `validate` tags of the configuration, which
// have no rules of their own.
var newConfigShape = sync.OnceValues(func() (*strictyaml.Validator, error) { return strictyaml.NewValidator(nil) })

// checkShape checks the tags of the configuration. Its errors contain keys but no lines,
// because a value may come from a file, a variable or a flag.
func checkShape(c *Config) error {
	shape, err := newConfigShape()
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range shape.Problems(c) {
		errs = append(errs, errors.New(p.String()))
	}
	return errors.Join(errs...)
}

// parseURL parses an absolute URL with one of the schemes.
func parseURL(text string, schemes ...string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && slices.Contains(schemes, u.Scheme)
}
