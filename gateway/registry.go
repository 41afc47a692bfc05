package gateway

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpfile"
)

// Origins of a server.
const (
	OriginFile         = "file"
	OriginRegistration = "registration"
)

// noVariables has no variables: a server that is registered must not read those of this
// process.
func noVariables(string) (string, bool) { return "", false }

// Servers returns the state of all servers, ordered by name.
func (g *Gateway) Servers() []ServerInfo {
	servers := *g.servers.Load()
	infos := make([]ServerInfo, len(servers))
	for i, s := range servers {
		infos[i] = s.info()
	}
	markAmbiguous(infos)
	return infos
}

// markAmbiguous sets the error of tools that have the same full name as one of another
// server, which depends on the tools that the servers list.
func markAmbiguous(infos []ServerInfo) {
	owners := map[string]*Tool{}
	servers := map[string]string{}
	for i := range infos {
		s := &infos[i]
		for j := range s.Tools {
			t := &s.Tools[j]
			other, ok := owners[t.Action]
			if !ok {
				owners[t.Action], servers[t.Action] = t, s.Name
				continue
			}
			t.Error = fmt.Sprintf("its name is that of a tool of the servers %q and %q: rename one of the servers", servers[t.Action], s.Name)
			other.Error = t.Error
		}
	}
}

// FindAction reports whether one of the servers has the action, or may have it, because a
// server of its name is not connected. If not, similar is an action with a similar name, ""
// if there is none.
func FindAction(servers []ServerInfo, action string) (found bool, similar string) {
	var names []string
	for i := range servers {
		s := &servers[i]
		if strings.HasPrefix(action, s.Name+".") && s.Status != StatusConnected {
			return true, ""
		}
		for j := range s.Tools {
			names = append(names, s.Tools[j].Action)
		}
	}
	if slices.Contains(names, action) {
		return true, ""
	}
	return false, nearestAction(action, names)
}

// Get returns the state of the server with the name.
func (g *Gateway) Get(name string) (ServerInfo, bool) {
	servers := g.Servers()
	i := slices.IndexFunc(servers, func(s ServerInfo) bool { return s.Name == name })
	if i < 0 {
		return ServerInfo{}, false
	}
	return servers[i], true
}

// find returns the server, or nil.
func (g *Gateway) find(name string) *server {
	for _, s := range *g.servers.Load() {
		if s.declared.ID == name {
			return s
		}
	}
	return nil
}

// Register adds a server and returns before it is connected. The declaration is one that
// package mcpfile has accepted, without environment variables. A server that is no process
// must have an address that Config.Guard permits. The error is a *contract.Error, with
// CodeConflict if the names of the server are those of another one, and with
// CodeInvalidRequest if a rule of redaction is not valid.
//
// A process is started with the rights of this one: an interface for others must accept
// only servers that are no processes.
func (g *Gateway) Register(declared mcpfile.Server) error {
	if err := CheckVariables(&declared); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	servers := *g.servers.Load()
	if err := checkConflicts(append(declarationsOf(servers), declared)); err != nil {
		return err
	}
	s, err := g.newServer(declared, OriginRegistration)
	if err != nil {
		return err
	}
	g.setServers(append(slices.Clone(servers), s))
	g.connect([]*server{s})
	return nil
}

// CheckVariables returns a *contract.Error if the declaration of a server that is registered
// uses environment variables of this process.
func CheckVariables(declared *mcpfile.Server) error {
	if _, err := declared.Expand(noVariables); err != nil {
		return &contract.Error{Code: contract.CodeInvalidRequest, Message: fmt.Sprintf("server %q uses environment variables, which only servers of the file may do: %v", declared.ID, err)}
	}
	return nil
}

// Remove removes a server when its calls in flight have ended. The error is a
// *contract.Error with CodeNotFound.
func (g *Gateway) Remove(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	servers := *g.servers.Load()
	i := slices.IndexFunc(servers, func(s *server) bool { return s.declared.ID == name })
	if i < 0 {
		return unknownServer(name)
	}
	g.setServers(slices.Delete(slices.Clone(servers), i, i+1))
	g.retire(servers[i])
	return nil
}

// Reset removes all servers.
func (g *Gateway) Reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	servers := *g.servers.Load()
	g.setServers(nil)
	for _, s := range servers {
		g.retire(s)
	}
}

// UpdateStatus sets the status that is shown of a server, until its connection changes it
// again. Calls of a connected server are not affected; those that wait for the connection
// fail if there is a failure. The error is a *contract.Error.
func (g *Gateway) UpdateStatus(name, status, failure string) error {
	s := g.find(name)
	if s == nil {
		return unknownServer(name)
	}
	if !slices.Contains([]string{StatusDisconnected, StatusConnecting, StatusConnected, StatusError}, status) {
		return &contract.Error{Code: contract.CodeInvalidRequest, Message: fmt.Sprintf("%q is no status of a server", status)}
	}
	s.reportStatus(status, failure)
	return nil
}

func unknownServer(name string) error {
	return &contract.Error{Code: contract.CodeNotFound, Message: fmt.Sprintf("there is no server %q", name)}
}

// Changes are the names of the servers that a reload affects.
type Changes struct {
	Added     []string `json:"added"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	Unchanged []string `json:"unchanged"`
}

// Reload replaces the servers of the previous file by those of another one. Servers whose
// declaration is the same keep their connection. The others are connected anew, while the
// calls in flight of their predecessors end. Servers that were registered stay. The error
// is a *contract.Error, with CodeConflict or, as that of Register, CodeInvalidRequest; then
// nothing changes.
func (g *Gateway) Reload(file *mcpfile.File) (Changes, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var (
		next, added []*server
		changes     Changes
	)
	previous := map[string]*server{} // of the file
	for _, s := range *g.servers.Load() {
		if s.origin == OriginFile {
			previous[s.declared.ID] = s
		} else {
			next = append(next, s)
		}
	}
	if err := checkConflicts(append(declarationsOf(next), file.Servers...)); err != nil {
		return Changes{}, err
	}
	for i := range file.Servers {
		declared := &file.Servers[i]
		old := previous[declared.ID]
		switch {
		case old != nil && sameDeclaration(&old.declared, declared):
			changes.Unchanged = append(changes.Unchanged, declared.ID)
			delete(previous, declared.ID)
			next = append(next, old)
			continue
		case old != nil:
			changes.Changed = append(changes.Changed, declared.ID)
		default:
			changes.Added = append(changes.Added, declared.ID)
		}
		s, err := g.newServer(*declared, OriginFile)
		if err != nil {
			return Changes{}, err
		}
		next, added = append(next, s), append(added, s)
	}
	g.setServers(next)
	g.connect(added)
	for id, s := range previous {
		if !slices.Contains(changes.Changed, id) {
			changes.Removed = append(changes.Removed, id)
		}
		g.retire(s)
	}
	slices.Sort(changes.Removed)
	return changes, nil
}

func sameDeclaration(a, b *mcpfile.Server) bool {
	x, y := *a, *b
	x.Line, y.Line = 0, 0
	return reflect.DeepEqual(x, y)
}

func declarationsOf(servers []*server) []mcpfile.Server {
	list := make([]mcpfile.Server, len(servers))
	for i, s := range servers {
		list[i] = s.declared
		list[i].Line = 0
	}
	return list
}

// checkConflicts returns a *contract.Error if names of the servers are the same.
func checkConflicts(servers []mcpfile.Server) error {
	var details []string
	for _, c := range mcpfile.FindConflicts(servers) {
		if !c.Possible {
			details = append(details, c.Detail)
		}
	}
	if details == nil {
		return nil
	}
	return &contract.Error{Code: contract.CodeConflict, Message: strings.Join(details, "; ")}
}

// setServers replaces the list. The caller holds mu.
func (g *Gateway) setServers(servers []*server) {
	slices.SortFunc(servers, func(a, b *server) int { return cmp.Compare(a.declared.ID, b.declared.ID) })
	g.servers.Store(&servers)
	g.bindings.update()
}

// connect starts the goroutines of servers.
func (g *Gateway) connect(servers []*server) {
	for _, s := range servers {
		g.group.Go("MCP server "+s.declared.ID, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			s.calls.onStop(cancel)
			s.maintain(ctx)
			return nil
		})
	}
}

// retire ends a server that is not in the list any more, after its calls in flight.
func (g *Gateway) retire(s *server) {
	idle := s.calls.retire()
	g.group.Go("drain MCP server "+s.declared.ID, func(ctx context.Context) error {
		timer := time.NewTimer(g.cfg.DrainTimeout)
		defer timer.Stop()
		select {
		case <-idle:
		case <-timer.C:
		case <-ctx.Done():
		}
		s.calls.stop()
		return nil
	})
}
