package mcpserver

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/gateway"
)

func server(name string, prefix *string, tools ...string) gateway.ServerInfo {
	s := gateway.ServerInfo{Name: name, Prefix: prefix}
	for _, tool := range tools {
		s.Tools = append(s.Tools, gateway.Tool{Action: name + "." + tool})
	}
	return s
}

func TestToolNames_Examples(t *testing.T) {
	servers := []gateway.ServerInfo{
		server("weather", nil, "query"),
		server("files", new(""), "read", "route_request", "my.tool"),
		server("other", new("o_"), "read"),
		server("first", new("same_"), "tool"),
		server("second", new("same_"), "tool"),
		server("like_first", new("first__"), "tool"),
		server("a__b", nil, "c"),
		server("a", nil, "b__c"),
	}
	got := map[string]string{}
	for name, tool := range toolNames(servers, map[string]bool{toolRoute: true}) {
		got[tool.Action] = name
	}
	want := map[string]string{
		"weather.query":       "weather__query",
		"files.read":          "read",
		"files.route_request": "files__route_request",
		"files.my.tool":       "files__my_tool_e8643aa8",
		"other.read":          "o_read",
		"first.tool":          "first__tool",
		"second.tool":         "second__tool",
		"like_first.tool":     "like_first__tool",
		"a__b.c":              "a__b__c_a92700ce",
		"a.b__c":              "a__b__c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names by action (-want +got):\n%s", diff)
	}
}

// Every tool has a name of its own that clients permit, and default names do not depend on
// other tools.
func TestToolNames_AreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab_.é]{1,6}`)
		prefix := rapid.Ptr(rapid.StringMatching(`[ab_]{0,2}`), true)
		tools := rapid.SliceOfNDistinct(name, 1, 4, rapid.ID)
		var servers []gateway.ServerInfo
		total := 0
		for _, id := range rapid.SliceOfNDistinct(name, 1, 4, rapid.ID).Draw(t, "servers") {
			s := server(id, prefix.Draw(t, "prefix"), tools.Draw(t, "tools")...)
			servers, total = append(servers, s), total+len(s.Tools)
		}
		names := toolNames(servers, nil)
		if len(names) != total {
			t.Fatalf("got names %v, want %d", slices.Sorted(maps.Keys(names)), total)
		}
		for name, tool := range names {
			if !isName(name) {
				t.Errorf("got the name %q of %s, which clients do not permit", name, tool.Action)
			}
		}
	})
}
