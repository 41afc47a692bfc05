//go:build unix

package gateway_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
)

// BenchmarkInvoke compares a call through the gateway with the same call by a client of the
// library.
func BenchmarkInvoke(b *testing.B) {
	server := httptest.NewServer(streamableHTTP(b, newSystem, nil))
	b.Cleanup(server.Close)
	direct := map[string]func() mcp.Transport{
		"stdio": func() mcp.Transport {
			return &mcp.CommandTransport{Command: exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0], "sample", "system")}
		},
		"http": func() mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: server.URL} },
	}
	declared := map[string]mcpfile.Server{
		"stdio": testServer("system", "sample", "system"),
		"http":  {ID: "system", Transport: mcpfile.HTTP, URL: server.URL},
	}
	for _, transport := range []string{"stdio", "http"} {
		b.Run(transport+"/direct", func(b *testing.B) {
			client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
			session, err := client.Connect(b.Context(), direct[transport](), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			params := &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}
			for b.Loop() {
				if _, err := session.CallTool(b.Context(), params); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(transport+"/gateway", func(b *testing.B) {
			cfg := gateway.Config{Client: mcpclient.Config{Supervisor: []string{os.Args[0], "supervise"}, Version: "bench"}}
			g, err := gateway.Start(context.WithoutCancel(b.Context()), []mcpfile.Server{declared[transport]}, cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			g.WaitReady(b.Context())
			action := contract.Action{Action: "system.echo", Input: json.RawMessage(`{"text":"x"}`)}
			for b.Loop() {
				if _, err := g.Invoke(b.Context(), action); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
