package egress

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// CheckURL refuses a URL from outside that could never be called, or that shows
// one thing to a reader and another to a client. What its host means it looks at
// only where that is an address: names are for Control.
func (g *Guard) CheckURL(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL is neither http nor https")
	case host == "" || u.Opaque != "":
		return errors.New("the URL names no host")
	case u.User != nil:
		return errors.New("the URL holds a user name or password; tasks come with a token")
	case u.Fragment != "":
		return errors.New("the URL has a fragment, which no server gets to see")
	case u.Port() != "" && !isPort(u.Port()), strings.HasSuffix(u.Host, ":"):
		return errors.New("the URL has a port that is none")
	case strings.ContainsFunc(u.Path+host, unicode.IsControl):
		return errors.New("the URL holds control characters")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return g.Check(addr)
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}
