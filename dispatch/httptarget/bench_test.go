package httptarget_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
)

// BenchmarkSend sends one task to an agent on this machine through dispatcher and
// target, with a new or a cached token, with and without a callback, and through
// net/http alone.
func BenchmarkSend(b *testing.B) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, successBody)
	}))
	defer agent.Close()
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for _, tc := range []struct {
		name  string
		reuse time.Duration
		call  func(*dispatch.Call)
	}{
		{"one token for each task", 0, func(*dispatch.Call) {}},
		{"one token for each task, with a callback", 0, withAwaitResult},
		{"token reused", time.Hour, func(*dispatch.Call) {}},
		{"token reused, with a callback", time.Hour, withAwaitResult},
	} {
		b.Run(tc.name, func(b *testing.B) {
			d, _ := newDispatcher(b, newTarget(b, publicURL(routerURL), func(c *httptarget.Config) { c.TokenReuse = tc.reuse }))
			c := newCall(agent.URL, tc.call)
			d.SetAgents([]*contract.RegistryEntry{c.Agent})
			b.ReportAllocs()
			for b.Loop() {
				if out := d.Send(ctx, c); out.Err != nil {
					b.Fatal(out.Err)
				}
			}
		})
	}
	b.Run("net/http alone", func(b *testing.B) {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		b.ReportAllocs()
		for b.Loop() {
			if err := bareCall(ctx, client, agent.URL); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// bareCall is the smallest client that sends a task and reads a result.
func bareCall(ctx context.Context, client *http.Client, url string) error {
	body, err := json.Marshal(newCall(url).Task)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var result contract.Result
	return json.NewDecoder(resp.Body).Decode(&result)
}
