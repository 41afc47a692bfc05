package agentkit

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// callbackPolicy restricts the URLs of callbacks. The task specifies the URL, but
// results and tokens must be sent only to hosts that the operator allows.
type callbackPolicy struct {
	scheme, host string   // of Config.JWKSURL
	extraHosts   []string // over https or the scheme of JWKSURL
}

func newCallbackPolicy(router *url.URL, extraHosts []string) callbackPolicy {
	return callbackPolicy{scheme: router.Scheme, host: normalizeHost(router.Scheme, router.Host), extraHosts: slices.Clone(extraHosts)}
}

// normalizeHost returns the host in lower case with its port.
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

// checkCallback returns the URLs for the result and for progress.
func (p callbackPolicy) checkCallback(c *contract.Callback) (result, progress string, err error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", "", errors.New("its url is not valid")
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
		return "", "", errors.New("its url does not end with /result of a task")
	}
	if c.Token == "" || strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", "", errors.New("its token is empty or has invalid characters")
	}
	return c.URL, task + "/progress", nil
}
