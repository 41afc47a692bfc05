package httptarget

import (
	"errors"
	"net/url"

	"github.com/caprouter/caprouter/internal/egress"
)

// parseEndpoint checks the URL of an endpoint. Its errors continue a sentence
// that starts with the agent's id, and do not contain the address, because the
// caller may not know it.
func parseEndpoint(endpoint string, allowPlainHTTP bool) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("has an endpoint.url that is no URL; write http(s)://host:port/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("has an endpoint.url that is neither http nor https")
	case u.Scheme == "http" && !allowPlainHTTP && !egress.IsLoopback(u.Hostname()):
		return nil, errors.New("is on another host over plain http, where its token could be read: use https, or set dispatch.allow_plain_http: true")
	}
	if u.Path == "" {
		u.Path = "/" // RFC 9112 §3.2.1; JoinPath would return a relative path
	}
	return u, nil
}
