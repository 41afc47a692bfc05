package agentkit

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// callbackPolicy are where callbacks may be: a task says where, but what an agent says
// of its work, and the token it says it with, must not go to just anybody.
type callbackPolicy struct {
	scheme, host string   // the router's, of Config.JWKSURL
	extraHosts   []string // hosts, over the router's scheme or a better one
}

func newCallbackPolicy(router *url.URL, more []string) callbackPolicy {
	return callbackPolicy{scheme: router.Scheme, host: normalizeHost(router.Scheme, router.Host), extraHosts: slices.Clone(more)}
}

// normalizeHost returns the host in one spelling, with its port.
func normalizeHost(scheme, host string) string {
	u := url.URL{Scheme: scheme, Host: strings.ToLower(host)}
	if u.Port() != "" {
		return u.Host
	}
	port := ":443"
	if scheme == "http" {
		port = ":80"
	}
	return strings.TrimSuffix(u.Host, ":") + port
}

// checkCallback returns the addresses for the result and for progress.
func (p callbackPolicy) checkCallback(c *contract.Callback) (result, progress string, err error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", "", errors.New("its url is no URL")
	}
	host := normalizeHost(u.Scheme, u.Host)
	task, isResult := strings.CutSuffix(c.URL, "/result")
	isNamed := func(name string) bool { return normalizeHost(u.Scheme, name) == host }
	switch {
	case u.Scheme == p.scheme && host == p.host:
	case (u.Scheme == p.scheme || u.Scheme == "https") && slices.ContainsFunc(p.extraHosts, isNamed):
	default:
		return "", "", errors.New("its url is not at the router: it must have the origin of JWKSURL, or a host of CallbackHosts")
	}
	if !isResult || u.User != nil || u.Opaque != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", errors.New("its url is not that of a task's result")
	}
	if c.Token == "" || strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", "", errors.New("its token is none")
	}
	return c.URL, task + "/progress", nil
}
