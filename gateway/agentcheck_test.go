package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/testkit"
)

// needs returns a capability and an action of agents. Their capabilities are those of agents.
func needs(id, action string) gateway.AgentNeeds {
	capabilities, _ := agents(id)
	return gateway.AgentNeeds{ID: id, Capabilities: capabilities, Action: action}
}

// describeBindings returns the bindings as lines.
func describeBindings(g *gateway.Gateway) []string {
	var lines []string
	for _, b := range g.Bindings() {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s%s %s %s", b.AgentID, b.Capability, b.Action, b.State, b.Error)))
	}
	return lines
}

// All capabilities and actions of agents are checked, without a request for a binding, and
// again when servers change.
func TestCheckAgents_FollowsServers(t *testing.T) {
	log := &testkit.LogBuffer{}
	var left atomic.Bool // gis
	cfg := gateway.Config{Capabilities: func(id string) ([]string, bool) {
		if id == "gis" && left.Load() {
			return nil, false
		}
		return agents(id)
	}}
	cfg.Client.Logger = log.Logger()
	provider := testServer("arcgis", "sample", "system")
	provider.Capabilities = []string{"raster:read"}
	g := startGateway(t, cfg, provider)
	g.WaitReady(t.Context())
	checked := []gateway.AgentNeeds{needs("gis", "arcgis.echo"), needs("other", "arcgis.echo"), needs("none", "arcgis.eko"), needs("none2", "")}
	g.CheckAgents(checked)
	want := []string{
		"gis arcgis.echo BOUND",
		"gis gis:radius_query DEGRADED",
		"gis raster:* BOUND", // of which the server provides a part
		"none arcgis.eko DEGRADED no MCP server has the action",
		`other arcgis.echo DEGRADED the agent declares no capability that the server "arcgis" provides`,
		"other incident:read DEGRADED",
	}
	if diff := cmp.Diff(want, describeBindings(g)); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gis:radius_query"}, g.MissingCapabilities("gis", checked[0].Capabilities)); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	for id, uncallable := range map[string]bool{"gis": false, "other": true} {
		if got := g.IsUncallable(id, "arcgis.echo"); got != uncallable {
			t.Errorf("IsUncallable(%s) = %v, want %v", id, got, uncallable)
		}
	}
	lines := strings.Count(log.String(), "\n")
	g.CheckAgents(checked)
	if again := strings.Count(log.String(), "\n"); again != lines || lines != 4 {
		t.Errorf("got %d lines, then %d, want 4, one for each problem:\n%s", lines, again, log.String())
	}
	events := g.Subscribe(100)
	defer events.Close()
	second := testServer("second", "sample", "system")
	second.Capabilities = []string{"gis:*", "incident:read"}
	if err := g.Register(second); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the capabilities are provided", func() bool {
		return len(g.MissingCapabilities("gis", checked[0].Capabilities)) == 0 && len(g.MissingCapabilities("other", checked[1].Capabilities)) == 0
	})
	if err := g.Remove("arcgis"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the action is missing", func() bool { return g.IsUncallable("gis", "arcgis.echo") })
	var got []string
	testkit.Eventually(t, "the events are sent", func() bool {
		select {
		case e := <-events.Events():
			if e.Type == contract.AgentBriefingEvent && e.AgentID == "gis" {
				got = append(got, strings.TrimSpace(e.Capability+e.Tool+" "+e.State+" "+e.Error))
			}
		default:
		}
		return len(got) == 3
	})
	slices.Sort(got)
	want = []string{"arcgis.echo DEGRADED no MCP server has the action", "gis:radius_query BOUND", "raster:* DEGRADED"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	left.Store(true)
	g.CheckAgents(checked[1:2])
	if diff := cmp.Diff([]string{"other arcgis.echo DEGRADED no MCP server has the action", "other incident:read BOUND"}, describeBindings(g)); diff != "" {
		t.Errorf("bindings after gis has left (-want +got):\n%s", diff)
	}
}

// A server that is being connected, or starts lazily, is no problem; one that fails is.
func TestCheckAgents_WaitsForServers(t *testing.T) {
	lazy := testServer("lazy", "sample", "system")
	lazy.Start, lazy.Capabilities = mcpfile.Lazy, []string{"incident:read"}
	broken := testServer("broken", "crash", "-")
	g := startGateway(t, gateway.Config{Capabilities: agents}, broken, lazy)
	g.WaitReady(t.Context())
	g.CheckAgents([]gateway.AgentNeeds{needs("other", "lazy.none"), needs("none", "broken.echo")})
	if g.IsUncallable("other", "lazy.none") || len(g.MissingCapabilities("other", []string{"incident:read"})) > 0 {
		t.Errorf("got bindings %q, want none degraded of a server that was not started", describeBindings(g))
	}
	testkit.Eventually(t, "the broken server is noticed", func() bool { return g.IsUncallable("none", "broken.echo") })
	g.WaitServer(t.Context(), "lazy")
	testkit.Eventually(t, "the action of the lazy server is missing", func() bool { return g.IsUncallable("other", "lazy.none") })
}

// The end of the gateway is no change of the servers.
func TestCheckAgents_IgnoresClose(t *testing.T) {
	log := &testkit.LogBuffer{}
	cfg := gateway.Config{Capabilities: agents}
	cfg.Client.Logger = log.Logger()
	server := testServer("sys", "sample", "system")
	server.Capabilities = []string{"incident:read"}
	g := startGateway(t, cfg, server)
	g.WaitReady(t.Context())
	g.CheckAgents([]gateway.AgentNeeds{needs("other", "sys.echo")})
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "of an agent") {
		t.Errorf("got a change logged:\n%s", log.String())
	}
}
