package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit/serversuite"
	"github.com/caprouter/caprouter/orchestrator"
)

// fileRegistry is a registry of servers with fixed content.
type fileRegistry []fileServer

type fileServer struct {
	NeedsAuth bool       `json:"-"`
	Name      string     `json:"name"`
	Tools     []fileTool `json:"tools"`
}

type fileTool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Repeatable  bool            `json:"repeatable,omitempty"`
}

// registryOf decodes {"servers":[{"name","tools":[…]}]}, sorted by name.
func registryOf(t testing.TB, text string) fileRegistry {
	t.Helper()
	var in struct {
		Servers fileRegistry `json:"servers"`
	}
	if err := strictjson.Unmarshal([]byte(text), &in); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(in.Servers, func(a, b fileServer) int { return strings.Compare(a.Name, b.Name) })
	return in.Servers
}

func (f fileRegistry) ListServers(context.Context) ([]orchestrator.Server, error) {
	list := make([]orchestrator.Server, len(f))
	for i, s := range f {
		list[i] = orchestrator.Server{Name: s.Name, Transport: "stdio", NeedsAuth: s.NeedsAuth}
	}
	return list, nil
}

func (f fileRegistry) ListTools(_ context.Context, server string) ([]string, error) {
	for _, s := range f {
		if s.Name == server {
			names := make([]string, len(s.Tools))
			for i := range s.Tools {
				names[i] = s.Tools[i].Name
			}
			slices.Sort(names)
			return names, nil
		}
	}
	return nil, fmt.Errorf("server %q: %w", server, orchestrator.ErrNotFound)
}

func (f fileRegistry) GetToolSchema(_ context.Context, server, tool string) (*orchestrator.Tool, error) {
	for _, s := range f {
		for i := range s.Tools {
			if t := &s.Tools[i]; s.Name == server && t.Name == tool {
				return &orchestrator.Tool{Server: server, Name: tool, InputSchema: t.InputSchema, Repeatable: t.Repeatable}, nil
			}
		}
	}
	return nil, fmt.Errorf("%s.%s: %w", server, tool, orchestrator.ErrNotFound)
}

func TestFileRegistry_IsServerRegistry(t *testing.T) {
	serversuite.Check(t, registryOf(t, testRegistry))
}
