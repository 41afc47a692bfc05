package agentkit

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// places are where callbacks may be: a task says where, but what an agent says
// of its work, and the token it says it with, must not go to just anybody.
type places struct {
	scheme, host string   // the router's, of Config.JWKSURL
	more         []string // hosts, over the router's scheme or a better one
}

func newPlaces(router *url.URL, more []string) places {
	return places{scheme: router.Scheme, host: hostOf(router.Scheme, router.Host), more: slices.Clone(more)}
}

// hostOf returns the host in one spelling, with its port.
func hostOf(scheme, host string) string {
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

// check returns the addresses for the result and for progress.
func (p places) check(c *contract.Callback) (result, progress string, err error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", "", errors.New("its url is no URL")
	}
	host := hostOf(u.Scheme, u.Host)
	task, isResult := strings.CutSuffix(c.URL, "/result")
	isNamed := func(name string) bool { return hostOf(u.Scheme, name) == host }
	switch {
	case u.Scheme == p.scheme && host == p.host:
	case (u.Scheme == p.scheme || u.Scheme == "https") && slices.ContainsFunc(p.more, isNamed):
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
