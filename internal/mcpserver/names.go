package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/caprouter/caprouter/gateway"
)

const (
	// nameSeparator is between the names of the server and of the tool.
	nameSeparator = "__"
	// maxName bounds the name of a tool. Some clients permit no more.
	maxName = 64
	// hashDigits is the number of hexadecimal digits that end the name of a tool whose own
	// name is not permitted.
	hashDigits = 8
)

// serverTool is a tool with its server.
type serverTool struct {
	*gateway.Tool
	server *gateway.ServerInfo
}

// toolNames returns the tools of all servers by their names for clients. taken are the
// names of the tools of this server.
func toolNames(servers []gateway.ServerInfo, taken map[string]bool) map[string]serverTool {
	var tools []serverTool
	var own []ownName
	for i := range servers {
		s := &servers[i]
		for k := range s.Tools {
			t := &s.Tools[k]
			tools = append(tools, serverTool{t, s})
			own = append(own, ownName{s, strings.TrimPrefix(t.Action, s.Name+".")})
		}
	}
	named := make(map[string]serverTool, len(tools))
	for i, name := range clientNames(own, taken) {
		named[name] = tools[i]
	}
	return named
}

// ownName is the name of a tool or of a prompt at its server.
type ownName struct {
	server *gateway.ServerInfo
	name   string
}

// clientNames returns the names for clients, in the order of the list, without those that
// are taken. A tool or a prompt gets its default name if its declared name is taken or that
// of another one.
func clientNames(list []ownName, taken map[string]bool) []string {
	count := map[string]int{} // of the entries that a name may be the name of
	for _, own := range list {
		declared, unique := own.declared(), defaultName(own.server.Name, own.name)
		if count[unique]++; declared != unique {
			count[declared]++
		}
	}
	names := make([]string, len(list))
	for i, own := range list {
		names[i] = own.declared()
		if taken[names[i]] || count[names[i]] > 1 {
			names[i] = defaultName(own.server.Name, own.name)
		}
	}
	return names
}

// declared returns the name with the prefix that the registry file declares for the tools
// of the server, or the default name.
func (o ownName) declared() string {
	if prefix := o.server.Prefix; prefix != nil && isName(*prefix+o.name) {
		return *prefix + o.name
	}
	return defaultName(o.server.Name, o.name)
}

// defaultName returns SERVER__TOOL, with a part of a hash at the end if this could be the
// name of another tool as well, or is no permitted name. The same tool always has the same
// name, whichever others there are.
func defaultName(server, tool string) string {
	name := server + nameSeparator + tool
	if isName(name) && !strings.Contains(server, nameSeparator) && !strings.HasSuffix(server, "_") && !strings.HasPrefix(tool, "_") {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	permitted := strings.Map(func(r rune) rune {
		if isNameRune(r) {
			return r
		}
		return '_'
	}, name)
	return permitted[:min(len(permitted), maxName-hashDigits-1)] + "_" + hex.EncodeToString(sum[:hashDigits/2])
}

// isName reports whether clients permit the name of a tool. The protocol permits more
// (MCP 2025-11-25, server/tools), but APIs of models do not.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) })
}

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}
