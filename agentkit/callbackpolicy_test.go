package agentkit

import (
	"net/url"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// FuzzCallback checks that results are only sent to the router, for any callback URL.
func FuzzCallback(f *testing.F) {
	router, err := url.Parse("http://router.example:8080/.well-known/jwks.json")
	if err != nil {
		f.Fatal(err)
	}
	p := newCallbackPolicy(router, []string{"public.example"})
	for _, seed := range []string{
		"http://router.example:8080/api/v1/tasks/t1/result", "https://public.example/api/v1/tasks/t1/result",
		"http://router.example:8080@evil.example/result", "http://router.example:8080\\@evil.example/result", "//evil.example/result",
		"HTTP://ROUTER.EXAMPLE:8080/result", "http://router.example:8080/%2e%2e/result", "http://router.example:8080?/result", "",
	} {
		f.Add(seed, "token")
	}
	f.Fuzz(func(t *testing.T, text, token string) {
		result, progress, err := p.checkCallback(&contract.Callback{URL: text, Token: token})
		if err != nil {
			return
		}
		for _, address := range []string{result, progress} {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatalf("callback %q: got it accepted, want it rejected as an invalid URL", address)
			}
			atRouter := u.Scheme == "http" && strings.EqualFold(u.Host, "router.example:8080")
			port := map[string]string{"https": "443", "http": "80"}[u.Scheme]
			atPublic := port != "" && strings.EqualFold(u.Hostname(), "public.example") && (u.Port() == "" || u.Port() == port)
			if !atRouter && !atPublic || u.User != nil || u.RawQuery != "" {
				t.Errorf("callback %q: got it accepted, want it rejected", address)
			}
		}
		if token == "" || strings.ContainsAny(token, "\r\n ") {
			t.Errorf("token %q: got it accepted, want it rejected", token)
		}
	})
}
