package mcpserver

import (
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/gateway"
)

// resourceScheme begins the URI of a resource for clients, mcp://SERVER/URI: two servers may
// use the same URI for different resources.
const resourceScheme = "mcp://"

// clientURI returns the URI of a resource, or of a template, for clients. Those of servers
// whose declared prefix is empty are the same for clients, as the names of their tools are.
func clientURI(s *gateway.ServerInfo, uri string) string {
	if isBare(s) {
		return uri
	}
	return resourceScheme + url.PathEscape(s.Name) + "/" + uri
}

// isBare reports whether names of the server are the same for clients.
func isBare(s *gateway.ServerInfo) bool { return s.Prefix != nil && *s.Prefix == "" }

// readable returns those of the servers whose resources the caller may read.
func (c *call) readable(servers []gateway.ServerInfo) []*gateway.ServerInfo {
	var readable []*gateway.ServerInfo
	for i := range servers {
		if s := &servers[i]; s.ReadsResources && c.mayRequest(s, gateway.MethodReadResource) {
			readable = append(readable, s)
		}
	}
	return readable
}

// resourcesOf and templatesOf are the lists of a server for [call.resources].
func resourcesOf(s *gateway.ServerInfo) []gateway.Entry { return s.Resources }
func templatesOf(s *gateway.ServerInfo) []gateway.Entry { return s.ResourceTemplates }

// resources returns the resources or templates of the servers that the caller may read, by URI.
// If several servers have the same one, it is that of the first.
func (c *call) resources(servers []gateway.ServerInfo, list func(*gateway.ServerInfo) []gateway.Entry) map[string]entry {
	byURI := map[string]entry{}
	for _, s := range slices.Backward(c.readable(servers)) {
		for _, e := range list(s) {
			byURI[clientURI(s, e.ID)] = entry{e, s}
		}
	}
	return byURI
}

// listResources returns the resources that the caller may read, ordered by URI.
func (c *call) listResources(cursor string) *mcp.ListResourcesResult {
	c.waitForServers()
	list := decodeEntries(c.resources(c.servers(), resourcesOf), func(r *mcp.Resource, uri string) { r.URI = uri })
	result := &mcp.ListResourcesResult{Cacheable: private}
	result.Resources, result.NextCursor = paginate(list, cursor)
	return result
}

// listResourceTemplates returns the templates of resources that the caller may read, ordered
// by URI template.
func (c *call) listResourceTemplates(cursor string) *mcp.ListResourceTemplatesResult {
	c.waitForServers()
	list := decodeEntries(c.resources(c.servers(), templatesOf), func(t *mcp.ResourceTemplate, uri string) { t.URITemplate = uri })
	result := &mcp.ListResourceTemplatesResult{Cacheable: private}
	result.ResourceTemplates, result.NextCursor = paginate(list, cursor)
	return result
}

// readResource returns the contents of a resource.
func (c *call) readResource(params *mcp.ReadResourceParams) (*mcp.ReadResourceResult, error) {
	s, uri, ok := c.findResource(params.URI)
	if !ok {
		return nil, errUnknownResource(c.notFoundCode(), params.URI)
	}
	result, err := request[mcp.ReadResourceResult](c, s, gateway.MethodReadResource, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	for _, contents := range result.Contents {
		if contents != nil {
			contents.URI = clientURI(s, contents.URI)
		}
	}
	result.Cacheable = private
	return result, nil
}

// findResource returns the server of a resource with a URI for clients, and its URI there.
func (c *call) findResource(uri string) (s *gateway.ServerInfo, own string, ok bool) {
	s, own = ownerOf(c.readable(c.servers()), uri)
	if s == nil { // the router may have been restarted since the client asked for the list
		c.waitForServers()
		s, own = ownerOf(c.readable(c.servers()), uri)
	}
	return s, own, s != nil
}

// errUnknownResource is the error for a resource that does not exist, or that the caller may not
// read.
func errUnknownResource(code int64, uri string) error {
	return &jsonrpc.Error{Code: code, Message: "unknown resource " + quoteName(uri) + ": resources/list returns those that may be read"}
}

// ownerOf returns the server of a resource with a URI for clients, and its URI there, or nil.
// A URI that names no server is one of a server with an empty prefix: of the first that lists
// it, or of the template whose literal beginning matches most of it. If there is only one such
// server, the resource may be one that it does not list. A URI of the web is not sent to a
// server that does not know it, because it may contain a credential, and neither is one that
// names another server.
func ownerOf(servers []*gateway.ServerInfo, uri string) (s *gateway.ServerInfo, own string) {
	if s, own = namedOwner(servers, uri); s != nil {
		return s, own
	}
	bare := slices.DeleteFunc(slices.Clone(servers), func(s *gateway.ServerInfo) bool { return !isBare(s) })
	for _, s := range bare {
		if slices.ContainsFunc(s.Resources, func(e gateway.Entry) bool { return e.ID == uri }) {
			return s, uri
		}
	}
	most := 0
	for _, server := range bare {
		for _, e := range server.ResourceTemplates {
			if literal, _, _ := strings.Cut(e.ID, "{"); e.ID == uri || len(literal) > most && strings.HasPrefix(uri, literal) {
				s, most = server, len(literal)
			}
		}
	}
	if s == nil && len(bare) == 1 && !isWeb(uri) && !strings.HasPrefix(uri, resourceScheme) {
		s = bare[0]
	}
	return s, uri
}

func isWeb(uri string) bool {
	return strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://")
}

// namedOwner returns the server that a URI for clients names, and the URI there, or nil.
func namedOwner(servers []*gateway.ServerInfo, uri string) (*gateway.ServerInfo, string) {
	rest, found := strings.CutPrefix(uri, resourceScheme)
	escaped, own, ok := strings.Cut(rest, "/")
	name, err := url.PathUnescape(escaped)
	if !found || !ok || err != nil {
		return nil, ""
	}
	for _, s := range servers {
		if s.Name == name && !isBare(s) {
			return s, own
		}
	}
	return nil, ""
}

// rewriteLinks replaces the URIs of resources in content of a server by those for clients,
// if the caller may read resources of the server. Links to the web remain: clients may fetch
// them without the server (MCP 2025-11-25, server/resources).
func (c *call) rewriteLinks(s *gateway.ServerInfo, content []mcp.Content) {
	if !s.ReadsResources || !c.mayRequest(s, gateway.MethodReadResource) {
		return
	}
	for _, block := range content {
		switch block := block.(type) {
		case *mcp.ResourceLink:
			if !isWeb(block.URI) {
				block.URI = clientURI(s, block.URI)
			}
		case *mcp.EmbeddedResource:
			if block.Resource != nil && !isWeb(block.Resource.URI) {
				block.Resource.URI = clientURI(s, block.Resource.URI)
			}
		}
	}
}
