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

// resources returns a list of resources or templates that the caller may read, by URI. If
// several servers have the same one, it is that of the first.
func (c *call) resources(method string) (map[string]entry, error) {
	c.waitForServers()
	list, err := c.list(c.serversFor(gateway.MethodReadResource), method)
	if err != nil {
		return nil, err
	}
	byURI := make(map[string]entry, len(list))
	for _, e := range slices.Backward(list) {
		byURI[clientURI(e.server, e.ID)] = e
	}
	return byURI, nil
}

// listResources returns the resources that the caller may read, ordered by URI.
func (c *call) listResources(cursor string) (*mcp.ListResourcesResult, error) {
	byURI, err := c.resources(gateway.MethodListResources)
	if err != nil {
		return nil, err
	}
	list, err := decodeEntries(byURI, func(r *mcp.Resource, uri string) { r.URI = uri })
	if err != nil {
		return nil, err
	}
	result := &mcp.ListResourcesResult{Cacheable: private}
	result.Resources, result.NextCursor = paginate(list, cursor)
	return result, nil
}

// listResourceTemplates returns the templates of resources that the caller may read, ordered
// by URI template.
func (c *call) listResourceTemplates(cursor string) (*mcp.ListResourceTemplatesResult, error) {
	byURI, err := c.resources(gateway.MethodListResourceTemplates)
	if err != nil {
		return nil, err
	}
	list, err := decodeEntries(byURI, func(t *mcp.ResourceTemplate, uri string) { t.URITemplate = uri })
	if err != nil {
		return nil, err
	}
	result := &mcp.ListResourceTemplatesResult{Cacheable: private}
	result.ResourceTemplates, result.NextCursor = paginate(list, cursor)
	return result, nil
}

// readResource returns the contents of a resource.
func (c *call) readResource(params *mcp.ReadResourceParams) (*mcp.ReadResourceResult, error) {
	s, uri, err := c.findResource(params.URI)
	if err != nil {
		return nil, err
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

// findResource returns the server of a resource with a URI for clients, and its URI there. A
// URI that names no server is one of a server with an empty prefix, or, if there is none, one
// from the content of a server. If several servers may have it, it is that of the first one
// that lists it, or else of the template whose literal beginning matches most of it.
func (c *call) findResource(uri string) (*gateway.ServerInfo, string, error) {
	if s, own := ownURI(c.serversFor(gateway.MethodReadResource), uri); s != nil {
		return s, own, nil
	}
	c.waitForServers() // the router may have been restarted since the client asked for the list
	servers := c.serversFor(gateway.MethodReadResource)
	if s, own := ownURI(servers, uri); s != nil {
		return s, own, nil
	}
	if bare := slices.DeleteFunc(slices.Clone(servers), func(s *gateway.ServerInfo) bool { return !isBare(s) }); len(bare) > 0 {
		servers = bare
	}
	if len(servers) == 1 && isBare(servers[0]) {
		return servers[0], uri, nil
	}
	s, err := c.searchResource(servers, uri)
	if s == nil && err == nil {
		err = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown resource " + quoteName(uri) + ": resources/list returns those that may be read"}
	}
	return s, uri, err
}

// ownURI returns the server that a URI for clients names, and the URI there, or nil.
func ownURI(servers []*gateway.ServerInfo, uri string) (*gateway.ServerInfo, string) {
	rest, _ := strings.CutPrefix(uri, resourceScheme)
	escaped, own, ok := strings.Cut(rest, "/")
	name, err := url.PathUnescape(escaped)
	if len(rest) == len(uri) || !ok || err != nil {
		return nil, ""
	}
	for _, s := range servers {
		if s.Name == name && !isBare(s) {
			return s, own
		}
	}
	return nil, ""
}

// searchResource returns the server that lists a resource or has a template for it, or nil.
func (c *call) searchResource(servers []*gateway.ServerInfo, uri string) (*gateway.ServerInfo, error) {
	if len(servers) == 0 {
		return nil, nil
	}
	list, err := c.list(servers, gateway.MethodListResources)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if e.ID == uri {
			return e.server, nil
		}
	}
	if list, err = c.list(servers, gateway.MethodListResourceTemplates); err != nil {
		return nil, err
	}
	var found *gateway.ServerInfo
	most := 0
	for _, e := range list {
		literal, _, _ := strings.Cut(e.ID, "{")
		if len(literal) > most && strings.HasPrefix(uri, literal) {
			found, most = e.server, len(literal)
		}
	}
	return found, nil
}

// rewriteLinks replaces the URIs of resources in content of a server by those for clients,
// if the caller may read resources of the server. Links to the web remain: clients may fetch
// them without the server (MCP 2025-11-25, server/resources).
func (c *call) rewriteLinks(s *gateway.ServerInfo, content []mcp.Content) {
	if !s.Resources || !c.mayRequest(s, gateway.MethodReadResource) {
		return
	}
	for _, block := range content {
		switch block := block.(type) {
		case *mcp.ResourceLink:
			if !strings.HasPrefix(block.URI, "https://") && !strings.HasPrefix(block.URI, "http://") {
				block.URI = clientURI(s, block.URI)
			}
		case *mcp.EmbeddedResource:
			if block.Resource != nil {
				block.Resource.URI = clientURI(s, block.Resource.URI)
			}
		}
	}
}
