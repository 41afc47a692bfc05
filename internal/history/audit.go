package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Lister lists the records of an audit log. *audit.Log, *audit.Copy and NoLog implement it.
type Lister interface {
	List(ctx context.Context, q audit.ListQuery) (audit.ListPage, error)
}

// AuditEntries returns a page of the audit log with the entries that the caller may see.
func (s *Service) AuditEntries(ctx context.Context, q contract.AuditQuery, caller *contract.Caller) (*contract.AuditPage, error) {
	if err := s.cfg.Recording.Await(ctx, q.RequestID); err != nil {
		return nil, s.storeError(ctx, "the audit log cannot be read", err)
	}
	page, err := readAuditEntries(ctx, s.cfg.Log, q, caller)
	if err == nil {
		return page, nil
	}
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return nil, e
	}
	return nil, s.storeError(ctx, "the audit log cannot be read", err)
}

// ReadAuditEntries returns a page of an audit log with all that the query selects, for a person
// who may read the files of the log.
func ReadAuditEntries(ctx context.Context, log Lister, q contract.AuditQuery) (*contract.AuditPage, error) {
	return readAuditEntries(ctx, log, q, &contract.Caller{AllScopes: true, AllAgents: true})
}

func readAuditEntries(ctx context.Context, log Lister, q contract.AuditQuery, caller *contract.Caller) (*contract.AuditPage, error) {
	since := firstTime(contract.DecisionQuery{Since: q.Since, RequestID: q.RequestID})
	list, err := log.List(ctx, audit.ListQuery{
		Since: since, Until: q.Until, Cursor: q.Cursor, Limit: q.Limit,
		Filter: func(rec *audit.Record) bool { return maySeeRecord(caller, rec) && selectsAuditRecord(q, rec, caller) },
	})
	if err != nil {
		return nil, err
	}
	page := &contract.AuditPage{Entries: []contract.AuditEntry{}, NextCursor: list.Next}
	for i := range list.Records {
		page.Entries = append(page.Entries, newAuditEntry(&list.Records[i], caller))
	}
	return page, nil
}

// maySeeRecord reports whether the caller may see the facts of a record: what GET /decisions, GET
// /orchestrations and the list of tools would show of it.
func maySeeRecord(caller *contract.Caller, rec *audit.Record) bool {
	actor := recordCaller(rec)
	switch {
	case caller.SeesAll():
		return true
	case rec.Subject == "": // the log itself
		return false
	case actor.SamePrincipal(caller):
		return true
	case !actor.SameTenant(caller):
		return false
	}
	switch rec.Kind {
	case audit.KindOutcome:
		return maySeeAgents(caller, rec.Agents)
	case audit.KindDecision: // a standby that the facts do not contain may still get a task
		return caller.AllAgents
	case audit.KindFeedback: // the facts do not contain whose request it is about: perhaps of another tenant
	case audit.KindToolCall:
		return maySeeAgents(caller, rec.Agents) && caller.MayInvoke(rec.Action)
	case audit.KindRun:
		return caller.HasScope(contract.ScopeApprove)
	case audit.KindAdmin:
	}
	return false
}

func maySeeAgents(caller *contract.Caller, agents []string) bool {
	return !slices.ContainsFunc(agents, func(id string) bool { return !visibility.MaySeeAgent(caller, id) })
}

// selectsAuditRecord compares the facts that the caller sees.
func selectsAuditRecord(q contract.AuditQuery, rec *audit.Record, caller *contract.Caller) bool {
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, contract.AuditKind(rec.Kind))) &&
		(q.Actor == "" || q.Actor == rec.Subject) &&
		(q.Agent == "" || slices.Contains(visibleAgents(rec, caller), q.Agent)) &&
		(q.Tool == "" || q.Tool == rec.Action) &&
		(q.RequestID == "" || q.RequestID == rec.RequestID || q.RequestID == rec.OrchestrationID)
}

// visibleAgents returns the agents of a record. The expected ones of feedback may be agents that
// the caller may not see any more.
func visibleAgents(rec *audit.Record, caller *contract.Caller) []string {
	if rec.Kind != audit.KindFeedback {
		return rec.Agents
	}
	return slices.DeleteFunc(slices.Clone(rec.Agents), func(id string) bool { return !visibility.MaySeeAgent(caller, id) })
}

// newAuditEntry returns the facts of a record that the caller may see.
func newAuditEntry(rec *audit.Record, caller *contract.Caller) contract.AuditEntry {
	e := contract.AuditEntry{
		ID: fmt.Sprintf("%s-%d", rec.Writer, rec.Position), Time: rec.At, Kind: contract.AuditKind(rec.Kind), Event: string(rec.Event),
		RequestID: rec.RequestID, OrchestrationID: rec.OrchestrationID, TraceID: rec.TraceID,
		Tenant: rec.Tenant, Actor: rec.Subject, Issuer: rec.Issuer, Status: rec.Status, Agents: visibleAgents(rec, caller), Tool: rec.Action,
		DecisionID: rec.DecisionID, RegistryVersion: rec.RegistryVersion, FallbackUsed: rec.FallbackUsed, Erased: rec.Erased,
	}
	switch {
	case rec.Kind == audit.KindRun:
		e.Event, e.Rule, _ = strings.Cut(rec.Note, " ")
	case rec.Kind == audit.KindFeedback:
		verdict, expected, _ := strings.Cut(rec.Note, " ")
		e.Verdict = contract.Verdict(verdict)
		if expected == noteExpectedNone {
			e.Detail = "no agent is expected"
		}
	case rec.Kind == audit.KindAdmin && len(rec.Agents) > 0:
		e.Instance = rec.Note
	case rec.Event == audit.EventApprove:
		e.Detail = "definition " + rec.Note
	case rec.Event == audit.EventAddServer, rec.Event == audit.EventDropServer:
		e.Detail = "server " + rec.Note
	case rec.Event == audit.EventTicket:
		e.Detail = "ticket " + rec.Note
	case rec.Kind == audit.KindAdmin:
		e.Detail = describeRemoval(rec)
	default:
		e.Detail = rec.Note
	}
	return e
}

// describeRemoval returns the note of a record of the log itself, and the records that it removes.
func describeRemoval(rec *audit.Record) string {
	if rec.UpTo == nil {
		return rec.Note
	}
	removed := fmt.Sprintf("up to record %d", rec.UpTo.Record)
	if rec.Chain != "" {
		removed += " of chain " + rec.Chain
	}
	if rec.Note == "" {
		return removed
	}
	return removed + ": " + rec.Note
}
