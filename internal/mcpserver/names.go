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

// toolNames returns the tools of all servers by their names for clients. taken are the
// names of the tools of this server. A tool gets its default name if its declared name is
// taken or that of another tool.
func toolNames(servers []gateway.ServerInfo, taken map[string]bool) map[string]*gateway.Tool {
	count := map[string]int{} // of the tools that a name may be the name of
	forEachTool(servers, func(s *gateway.ServerInfo, t *gateway.Tool) {
		declared, unique := declaredName(s, t), defaultName(s.Name, toolName(s, t))
		if count[unique]++; declared != unique {
			count[declared]++
		}
	})
	names := map[string]*gateway.Tool{}
	forEachTool(servers, func(s *gateway.ServerInfo, t *gateway.Tool) {
		name := declaredName(s, t)
		if taken[name] || count[name] > 1 {
			name = defaultName(s.Name, toolName(s, t))
		}
		names[name] = t
	})
	return names
}

func forEachTool(servers []gateway.ServerInfo, fn func(s *gateway.ServerInfo, t *gateway.Tool)) {
	for i := range servers {
		for k := range servers[i].Tools {
			fn(&servers[i], &servers[i].Tools[k])
		}
	}
}

// toolName returns the name of the tool at its server.
func toolName(s *gateway.ServerInfo, t *gateway.Tool) string {
	return strings.TrimPrefix(t.Action, s.Name+".")
}

// declaredName returns the name with the prefix that the registry file declares for the
// tools of the server, or the default name.
func declaredName(s *gateway.ServerInfo, t *gateway.Tool) string {
	name := toolName(s, t)
	if s.Prefix != nil && isName(*s.Prefix+name) {
		return *s.Prefix + name
	}
	return defaultName(s.Name, name)
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
