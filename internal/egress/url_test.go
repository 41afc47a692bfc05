package egress_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/egress"
)

func TestGuard_CheckURL(t *testing.T) {
	guard := egress.NewGuard(netip.MustParsePrefix("10.1.0.0/16"))
	for raw, want := range map[string]string{
		"https://agent.example":                   "",
		"https://agent.example/tasks?tenant=x":    "",
		"http://agent.example:8080/":              "",
		"https://agent.example:65535/":            "",
		"https://93.184.215.14/":                  "",
		"https://[2606:4700::1111]:8443/":         "",
		"http://10.1.2.3:1/":                      "",
		"http://localhost/":                       "", // a name: checked by the dialler
		"http://2130706433/":                      "", // not an address in standard notation: checked by the dialler
		"http://10.2.2.3/":                        "no public address",
		"http://127.0.0.1/":                       "no public address",
		"http://[::1]/":                           "no public address",
		"http://[::ffff:10.1.2.3]/":               "no public address",
		"http://[fe80::1%25eth0]/":                "no public address",
		"http://example.com@127.0.0.1/":           "user name",
		"http://:secret@agent.example/":           "user name",
		"http://127.0.0.1#@example.com/":          "fragment",
		"http://agent.example/#x":                 "fragment",
		"http://agent.example:0/":                 "invalid port",
		"http://agent.example:65536/":             "invalid port",
		"http://agent.example:/":                  "invalid port",
		"http://agent.example/%0d%0aX-Injected:1": "control characters",
		"http:///x":                               "no host",
		"http://:80/":                             "no host",
		"http:agent.example":                      "no host",
		"file:///etc/passwd":                      "neither http",
		"//169.254.169.254/":                      "neither http",
		"":                                        "neither http",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Errorf("%q: %v", raw, err)
			continue
		}
		err = guard.CheckURL(u)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckURL(%q) = %v, want %q", raw, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("CheckURL(%q) = %v, which shows the password", raw, err)
		}
	}
}

// FuzzCheckURL: an accepted URL parses to the same host again.
func FuzzCheckURL(f *testing.F) {
	for raw := range otherReasons {
		f.Add(raw)
	}
	for _, raw := range []string{"https://agent.example:8080/tasks?x=y", "http://[::1%25eth0]:1/", "http://127.0.0.1#@example.com/", "http://①⑥⑨.254.169.254/"} {
		f.Add(raw)
	}
	guard := egress.NewGuard()
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.Parse(raw)
		if err != nil || guard.CheckURL(u) != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.Scheme != u.Scheme || guard.CheckURL(again) != nil {
			t.Errorf("%q is accepted, but not as %q (%v)", raw, u, err)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil && isSpecial(addr) {
			t.Errorf("%q is accepted", raw)
		}
		if u.User != nil || strings.ContainsAny(u.String(), "#\r\n") {
			t.Errorf("%q is accepted as %q", raw, u)
		}
	})
}
