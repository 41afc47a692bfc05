package app

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A binding without a provider is degraded, and recovers when the file declares one.
func TestMCP_BindingRecovers(t *testing.T) {
	t.Parallel()
	path, change := useMCP(t, samples("system"))
	s := startServer(t, "clients:\n"+entry("planner", "plan_trip", "travel", "", ", mcp_capabilities: ['weather:read']"), change)
	waitForServers(s, "system")
	var b rest.MCPBinding
	s.mcp("POST", "/bind", `{"agent_id":"planner","capability":"weather:read"}`, 200, &b)
	if b.State != contract.BindingDegraded || b.Suggestion == "" {
		t.Errorf("got %+v, want DEGRADED with a suggestion", b)
	}
	s.mcp("POST", "/bind", `{"agent_id":"planner","capability":"weather:write"}`, 403, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url(mcpEvents), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(resp.Body); scan.Scan(); {
			if data, ok := strings.CutPrefix(scan.Text(), "data: "); ok && strings.Contains(data, contract.AgentBriefingEvent) {
				lines <- data
			}
		}
	}()
	if first := testkit.Receive(t, lines); !strings.Contains(first, contract.BindingDegraded) {
		t.Errorf("got event %s, want the current state, %s", first, contract.BindingDegraded)
	}
	if err := os.WriteFile(path, []byte(samples("system", "weather")), 0o600); err != nil {
		t.Fatal(err)
	}
	if next := testkit.Receive(t, lines); !strings.Contains(next, contract.BindingBound) {
		t.Errorf("got event %s, want %s", next, contract.BindingBound)
	}
}

// The bindings of an agent end when it is removed from the registry, or no longer declares the
// capability.
func TestMCP_BindingEndsWithAgent(t *testing.T) {
	t.Parallel()
	_, change := useMCP(t, samples("system"))
	other := entry("other", "plan_trip", "travel", "", ", mcp_capabilities: ['weather:read']")
	planner := entry("planner", "plan_trip", "travel", "", ", mcp_capabilities: ['weather:read', 'system:read']")
	s := startServer(t, "clients:\n"+planner+other, change)
	for _, agent := range []string{"planner", "other"} {
		s.mcp("POST", "/bind", fmt.Sprintf(`{"agent_id":%q,"capability":"weather:read"}`, agent), 200, nil)
	}
	s.mcp("POST", "/bind", `{"agent_id":"planner","capability":"system:read"}`, 200, nil)
	for _, step := range []struct {
		registry string
		want     []string
	}{
		{planner, []string{"planner system:read", "planner weather:read"}},
		{entry("planner", "plan_trip", "travel", "", ", mcp_capabilities: ['system:read']"), []string{"planner system:read"}},
	} {
		s.write("clients:\n" + step.registry)
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
		var got []string
		testkit.Eventually(t, fmt.Sprintf("the bindings are %q", step.want), func() bool {
			got = nil
			for _, b := range s.core.mcp.Bindings() {
				got = append(got, b.AgentID+" "+b.Capability)
			}
			return slices.Equal(got, step.want)
		})
	}
}
