package mcpfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// format is what distinguishes the formats besides their outermost key.
type format struct {
	name    string
	foreign bool   // the file belongs to another program
	http    string // meaning of the transport "http"
}

const formatHint = `expected one of these: {"servers": [...]}, {"servers": {...}}, {"mcpServers": {...}}, {"mcp": {...}}, {"plugins": [...]}`

// readFile recognizes the format and reads the servers.
func (r *reader) readFile(f *File, top *object) {
	var keys []string
	for _, key := range []string{"plugins", "servers", "mcpServers", "mcp"} {
		if raw, ok := top.members[key]; ok && (key != "mcp" || bytes.HasPrefix(raw, []byte("{"))) {
			keys = append(keys, key)
		}
	}
	top.known = []string{"$schema"}
	switch {
	case len(keys) > 1:
		r.errorf("/"+keys[1], "%s and %s are different formats: use one of them", keys[0], keys[1])
	case len(keys) == 0:
		r.readBareMap(f, top)
	case keys[0] == "plugins":
		r.readList(f, top, format{name: "plugins", http: REST}, "plugins")
	case keys[0] == "mcpServers":
		r.readMap(f, top, format{name: "mcpServers", foreign: true, http: HTTP}, "mcpServers")
	case keys[0] == "mcp" && isServer(top.members["mcp"]):
		r.readBareMap(f, top) // of a server with the name mcp
	case keys[0] == "mcp":
		r.readMap(f, top, format{name: "map", http: HTTP}, "mcp")
	case bytes.HasPrefix(top.members["servers"], []byte("[")):
		r.readList(f, top, format{name: "servers", http: HTTP}, "servers")
	case isServer(top.members["servers"]):
		r.readBareMap(f, top)
	default:
		r.readMap(f, top, format{name: "vscode", foreign: true, http: HTTP}, "servers")
	}
}

// isServer reports whether raw is an object that can be a server, and not a map of
// servers.
func isServer(raw json.RawMessage) bool {
	o := (&reader{}).readObject("", raw)
	if o == nil {
		return false
	}
	for _, key := range []string{"type", "command", "url"} {
		if value, ok := o.members[key]; ok && !bytes.HasPrefix(value, []byte("{")) {
			return true
		}
	}
	return false
}

func (r *reader) readBareMap(f *File, top *object) {
	names := slices.Sorted(maps.Keys(top.members))
	if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return isServer(top.members[name]) }) {
		r.errorf("", "this is no registry of MCP servers; %s", formatHint)
		return
	}
	f.Format = "map"
	for _, name := range names {
		if name != "$schema" {
			r.readMember(f, format{name: "map", http: HTTP}, top, name)
		}
	}
}

func (r *reader) readMap(f *File, top *object, form format, key string) {
	f.Format = form.name
	servers := top.getObject(key)
	if form.name == "vscode" {
		top.known = append(top.known, "inputs")
	}
	top.checkUnknown(form.foreign)
	if servers == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(servers.members)) {
		r.readMember(f, form, servers, name)
	}
}

// readMember reads the server with the name.
func (r *reader) readMember(f *File, form format, servers *object, name string) {
	at := strictjson.AppendPointer(servers.at, name)
	if o := r.readObject(at, servers.members[name]); o != nil {
		f.Servers = append(f.Servers, o.readServer(form, name))
	}
}

func (r *reader) readList(f *File, top *object, form format, key string) {
	f.Format = form.name
	list := get[[]json.RawMessage](top, key)
	if form.name == "servers" {
		if v := get[string](top, "version"); v != "" && v != "1.0" {
			r.errorf("/version", "version %q is not supported; use 1.0", v)
		}
	}
	top.checkUnknown(form.foreign)
	for i, raw := range list {
		if o := r.readObject("/"+key+"/"+strconv.Itoa(i), raw); o != nil {
			id := get[string](o, "id")
			if id == "" && o.members["id"] == nil {
				o.errorf(o.at, "the server has no id")
				continue
			}
			f.Servers = append(f.Servers, o.readServer(form, id))
		}
	}
}

// checkServers checks what concerns several servers.
func (r *reader) checkServers(servers []Server) {
	for _, c := range FindConflicts(servers) {
		if c.Possible {
			r.warnings = append(r.warnings, strictyaml.Error{File: r.file, Line: servers[c.Server].Line, Column: r.columns[c.Server], Detail: c.Detail})
		} else {
			r.errs = append(r.errs, strictyaml.Error{File: r.file, Line: servers[c.Server].Line, Column: r.columns[c.Server], Detail: c.Detail})
		}
	}
}

// Conflict is a server whose names are those of another one.
type Conflict struct {
	Server   int // index of the server
	Detail   string
	Possible bool // depends on the tools that the servers list
}

// FindConflicts returns the servers with the id or an action of an earlier one. The
// name of an action is that of its server and of its tool with a dot between them, and
// both may contain dots, so that "a.b" with the tool "c" and "a" with "b.c" have the
// same action.
func FindConflicts(servers []Server) []Conflict {
	var conflicts []Conflict
	lines := map[string]int{}     // of the servers
	owners := map[string]string{} // of the actions, by full name
	for i := range servers {
		s := &servers[i]
		if line, ok := lines[s.ID]; ok {
			detail := fmt.Sprintf("server %q is already declared", s.ID)
			if line > 0 {
				detail += fmt.Sprintf(" in line %d", line)
			}
			conflicts = append(conflicts, Conflict{Server: i, Detail: detail})
			continue
		}
		for _, a := range s.Actions {
			full := s.ID + "." + a.Name
			if owner, ok := owners[full]; ok && owner != s.ID {
				conflicts = append(conflicts, Conflict{
					Server: i, Detail: fmt.Sprintf("action %q is declared by the servers %q and %q: rename one of them", full, owner, s.ID),
				})
			}
			owners[full] = s.ID
		}
		for j := range i {
			if other := &servers[j]; mayConflict(s, other) || mayConflict(other, s) {
				conflicts = append(conflicts, Conflict{
					Server: i, Possible: true,
					Detail: fmt.Sprintf("tools of the servers %q and %q may have the same name: rename one of them", other.ID, s.ID),
				})
			}
		}
		lines[s.ID] = s.Line
	}
	return conflicts
}

// mayConflict reports whether a tool of long, whose id begins with that of short, may
// have the name of a tool of short. Declared actions are compared by their names.
func mayConflict(long, short *Server) bool {
	rest, ok := strings.CutPrefix(long.ID, short.ID+".")
	if !ok || len(long.Actions) > 0 && len(short.Actions) > 0 {
		return false
	}
	return len(short.Actions) == 0 || slices.ContainsFunc(short.Actions, func(a Action) bool { return strings.HasPrefix(a.Name, rest+".") })
}

// actionName returns the name of the tool: names of actions may begin with the id of
// their server.
func actionName(id, name string) string {
	return strings.TrimPrefix(name, id+".")
}
