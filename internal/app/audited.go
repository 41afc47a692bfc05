package app

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/fleet"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/tickets"
)

// recordFleetChange returns a function that writes a change of a registration to the audit
// log. The change is stored already, so a failure is logged.
func (p *persistence) recordFleetChange(logger *slog.Logger) func(context.Context, fleet.Change) {
	return func(ctx context.Context, change fleet.Change) {
		ctx, cancel := execution.Detach(ctx)
		defer cancel()
		err := p.auditLog.AppendAct(ctx, audit.Act{Event: audit.Event(change.Kind), Agent: change.AgentID, Note: change.Instance}, change.Caller)
		if err != nil {
			logger.ErrorContext(ctx, "a change of a registration is not in the audit log", "agent", change.AgentID, "change", string(change.Kind), "error", err)
		}
	}
}

// actRecorder records acts of administrators. They are stored already when they are recorded,
// so a failure to write is logged.
type actRecorder struct {
	auditLog *audit.Log
	logger   *slog.Logger
}

func (r actRecorder) record(ctx context.Context, act audit.Act, caller *contract.Caller) {
	ctx, cancel := execution.Detach(ctx)
	defer cancel()
	if err := r.auditLog.AppendAct(ctx, act, caller); err != nil {
		r.logger.ErrorContext(ctx, "an act of an administrator is not in the audit log",
			"event", string(act.Event), "tool", act.Tool, "note", act.Note, "error", err)
	}
}

// auditedTickets records the closing of tickets.
type auditedTickets struct {
	*tickets.Service
	actRecorder
}

// CloseTicket closes a ticket. It is recorded unless the ticket was closed before.
func (t auditedTickets) CloseTicket(ctx context.Context, id, note string, caller *contract.Caller) (*contract.Ticket, error) {
	ticket, closed, err := t.Service.CloseTicket(ctx, id, note, caller)
	if closed {
		t.record(ctx, audit.Act{Event: audit.EventTicket, Note: id}, caller)
	}
	return ticket, err
}

// auditedHost records the acts of administrators on MCP servers and their tools.
type auditedHost struct {
	*mcphost.Host
	actRecorder
}

// ApproveTool approves the definition of a tool.
func (h auditedHost) ApproveTool(ctx context.Context, action, hash string, caller *contract.Caller) error {
	if err := h.Host.ApproveTool(ctx, action, hash); err != nil {
		return err
	}
	h.record(ctx, audit.Act{Event: audit.EventApprove, Tool: action, Note: hash}, caller)
	return nil
}

// Register registers a server.
func (h auditedHost) Register(ctx context.Context, r mcphost.Registration, caller *contract.Caller) (gateway.ServerInfo, error) {
	info, err := h.Host.Register(ctx, r, caller)
	if err == nil {
		h.record(ctx, audit.Act{Event: audit.EventAddServer, Note: r.Name}, caller)
	}
	return info, err
}

// Replace registers a server, or replaces its registration.
func (h auditedHost) Replace(ctx context.Context, r mcphost.Registration, caller *contract.Caller) (info gateway.ServerInfo, created bool, err error) {
	info, created, err = h.Host.Replace(ctx, r, caller)
	if err == nil {
		h.record(ctx, audit.Act{Event: audit.EventAddServer, Note: r.Name}, caller)
	}
	return info, created, err
}

// Remove removes the registration of a server.
func (h auditedHost) Remove(ctx context.Context, name string, caller *contract.Caller) error {
	if err := h.Host.Remove(ctx, name, caller); err != nil {
		return err
	}
	h.record(ctx, audit.Act{Event: audit.EventDropServer, Note: name}, caller)
	return nil
}

// describeKeyChange returns "added ID; revoked ID, ID; removed ID", without the parts that are
// empty, or "" if the keys only grew older.
func describeKeyChange(before, after []keyring.Info) string {
	find := func(list []keyring.Info, id string) *keyring.Info {
		if i := slices.IndexFunc(list, func(k keyring.Info) bool { return k.ID == id }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	var added, revoked, removed []string
	for i := range after {
		known := find(before, after[i].ID)
		if known == nil {
			added = append(added, after[i].ID)
		}
		if after[i].State == keyring.StateRevoked && (known == nil || known.State != keyring.StateRevoked) {
			revoked = append(revoked, after[i].ID)
		}
	}
	for i := range before {
		if find(after, before[i].ID) == nil {
			removed = append(removed, before[i].ID)
		}
	}
	var parts []string
	for _, part := range []struct {
		verb string
		ids  []string
	}{{"added", added}, {"revoked", revoked}, {"removed", removed}} {
		if len(part.ids) > 0 {
			parts = append(parts, part.verb+" "+strings.Join(part.ids, ", "))
		}
	}
	return strings.Join(parts, "; ")
}
