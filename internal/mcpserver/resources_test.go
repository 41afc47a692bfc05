package mcpserver

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/gateway"
)

// A URI for clients leads back to its server and its own URI.
func TestNamedOwner_InvertsClientURI(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a/%:é ]{1,4}`), 1, 4, rapid.ID).Draw(t, "servers")
		servers := make([]*gateway.ServerInfo, len(names))
		for i, name := range names {
			servers[i] = &gateway.ServerInfo{Name: name, Prefix: rapid.Ptr(rapid.StringMatching(`[ab]{0,1}`), true).Draw(t, "prefix")}
		}
		want := rapid.SampledFrom(servers).Draw(t, "server")
		uri := rapid.StringMatching(`[a:/%{}?#é]{0,8}`).Draw(t, "uri")
		got, own := namedOwner(servers, clientURI(want, uri))
		if isBare(want) {
			return
		}
		if got != want || own != uri {
			t.Fatalf("%q of %q: got %+v and %q", uri, want.Name, got, own)
		}
	})
}

func TestNamedOwner_OfNoServer(t *testing.T) {
	servers := []*gateway.ServerInfo{{Name: "a"}, {Name: "bare", Prefix: new("")}}
	for _, uri := range []string{"", "file:///a/b", "mcp://", "mcp://a", "mcp://b/x", "mcp://%zz/x", "mcp://bare/x", "MCP://a/x"} {
		if s, own := namedOwner(servers, uri); s != nil {
			t.Errorf("%s: got %q of %q, want no server", uri, own, s.Name)
		}
	}
}

// A definition that its redaction has made invalid does not hide the others.
func TestDecodeEntries_LeavesOutInvalidDefinition(t *testing.T) {
	entries := map[string]entry{
		"valid":   {Entry: gateway.Entry{ID: "a", Definition: []byte(`{"name":"a","title":"A"}`)}},
		"invalid": {Entry: gateway.Entry{ID: "b", Definition: []byte(`{"name":"b","arguments":"<redacted>"}`)}},
	}
	got := decodeEntries(entries, func(p *mcp.Prompt, name string) { p.Name = name })
	if len(got) != 1 || got["valid"] == nil || got["valid"].Name != "valid" || got["valid"].Title != "A" {
		t.Errorf("got %v, want the valid prompt", got)
	}
}
