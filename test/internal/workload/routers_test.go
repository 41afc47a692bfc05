package workload

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// startNamed starts a server that answers with its name, and returns its address.
func startNamed(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Router", name+" "+r.Host)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestRouters_AlternateBetweenRunningOnes(t *testing.T) {
	r := NewRouters()
	send := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, PublicURL+"/path", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := r.Client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		return resp.Header.Get("Router"), nil
	}
	if _, err := send(); !errors.Is(err, errNoRouter) {
		t.Errorf("without a router: got %v, want %v", err, errNoRouter)
	}
	first, second := startNamed(t, "first"), startNamed(t, "second")
	r.Add(first)
	r.Add(second)
	seen := map[string]int{}
	for range 4 {
		name, err := send()
		if err != nil {
			t.Fatal(err)
		}
		seen[name]++
	}
	if seen["first localhost"] != 2 || seen["second localhost"] != 2 {
		t.Errorf("got %v, want each twice, with the host of the URL", seen)
	}
	r.Remove(first)
	for range 2 {
		if name, err := send(); err != nil || name != "second localhost" {
			t.Errorf("after the removal of the first: got %q, %v, want the second", name, err)
		}
	}
	r.Remove(second)
	if _, err := send(); !errors.Is(err, errNoRouter) {
		t.Errorf("after the removal of both: got %v, want %v", err, errNoRouter)
	}
}
