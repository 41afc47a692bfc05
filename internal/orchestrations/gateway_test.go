package orchestrations_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/orchestrations"
	"github.com/caprouter/caprouter/internal/testkit/serversuite"
)

func TestGateway_IsRegistry(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler()) // no tool is called
	t.Cleanup(server.Close)
	file, err := mcpfile.Parse("mcp.json", []byte(`{"plugins":[
		{"id":"files","endpoint":"`+server.URL+`","actions":[{"name":"write"},{"name":"read"}]},
		{"id":"mail","endpoint":"`+server.URL+`","actions":[{"name":"send"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Start(t.Context(), file.Servers, gateway.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	serversuite.Check(t, orchestrations.Gateway{Servers: g})
}
