package app

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/egress"
)

// checkListen refuses to serve other hosts without authentication.
func checkListen(listen, authMode string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen: %q is not host:port, e.g. 127.0.0.1:8080", listen)
	}
	if authMode == authNone && !egress.IsLoopback(host) {
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

func checkOneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", key, value, strings.Join(allowed, ", "))
}

func checkRange(key string, value, least, most int) error {
	if value >= least && value <= most {
		return nil
	}
	return fmt.Errorf("%s: %d is not between %d and %d", key, value, least, most)
}

// parseURL parses an absolute URL with one of the schemes.
func parseURL(text string, schemes ...string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && slices.Contains(schemes, u.Scheme)
}

func checkNotEmpty(key, value string) error {
	if value != "" {
		return nil
	}
	return fmt.Errorf("%s: must not be empty", key)
}

// errorOf drops the result of a check and returns its error.
func errorOf[T any](_ T, err error) error { return err }
