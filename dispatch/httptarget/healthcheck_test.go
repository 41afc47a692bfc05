package httptarget_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestTarget_CheckHealth(t *testing.T) {
	paths := make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Method != http.MethodGet {
			t.Errorf("got %s with Authorization %q, want GET without a token", r.Method, r.Header.Get("Authorization"))
		}
		paths <- r.URL.RequestURI()
		switch r.URL.Path {
		case "/broken":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/moved":
			http.Redirect(w, r, "/healthz", http.StatusFound)
		}
	}))
	defer server.Close()
	for name, tc := range map[string]struct {
		url, path string
		origin    contract.Origin
		wantPath  string // "" = no request
		wantErr   string // "" = healthy
	}{
		"default path":    {server.URL + "/tasks?key=x", "", contract.OriginFile, "/healthz", ""},
		"path":            {server.URL + "/tasks", "/up", contract.OriginFile, "/up", ""},
		"5xx":             {server.URL, "/broken", contract.OriginFile, "/broken", "it answered 503"},
		"redirect":        {server.URL, "/moved", contract.OriginFile, "/moved", "it answered 302"},
		"no listener":     {"http://" + testkit.RefusingAddress, "", contract.OriginFile, "", "connection refused"},
		"no URL":          {"tasks", "", contract.OriginFile, "", "has an endpoint.url that is no URL"},
		"blocked address": {server.URL, "", contract.OriginRegistration, "", "may not be called"},
	} {
		t.Run(name, func(t *testing.T) {
			target := newTarget(t, allowRanges())
			err := target.CheckHealth(t.Context(), &contract.RegistryEntry{
				ID: "a", Origin: tc.origin, Endpoint: contract.Endpoint{URL: tc.url}, Health: contract.Health{Path: tc.path},
			})
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %v, want %q", err, tc.wantErr)
			}
			if tc.wantPath == "" {
				if len(paths) != 0 {
					t.Errorf("got a request of %s, want none", <-paths)
				}
				return
			}
			if got := testkit.Receive(t, paths); got != tc.wantPath {
				t.Errorf("got a request of %s, want %s", got, tc.wantPath)
			}
		})
	}
}
