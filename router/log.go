package router

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Decisions is a page of the decision log, as far as it is the caller's.
func (r *Router) Decisions(ctx context.Context, q contract.DecisionQuery, caller *contract.Caller) (*contract.DecisionPage, error) {
	if r.keep.Trail == nil {
		return nil, &contract.Error{Code: contract.CodeNotFound, Message: "no decisions are recorded here"}
	}
	page, err := r.keep.Trail.Read(ctx, audit.Query{
		Since: q.Since, Cursor: q.Cursor, Limit: q.Limit,
		Filter: func(rec *audit.Record) bool {
			return (q.Outcome == "" || q.Outcome == rec.Status) &&
				(q.Agent == "" || slices.Contains(rec.Agents, q.Agent) && caller.MaySee(q.Agent)) &&
				(&found{owner: ownerOf(rec), outcome: rec}).visibleTo(caller, rec.RequestID)
		},
	})
	if err != nil {
		if e, ok := errors.AsType[*contract.Error](err); ok {
			return nil, e
		}
		return nil, r.storeTrouble(ctx, "the decision log cannot be read", err)
	}
	out := &contract.DecisionPage{Decisions: make([]contract.DecisionEntry, len(page.Records)), NextCursor: page.Next}
	for i := range page.Records {
		rec := &page.Records[i]
		if out.Decisions[i], err = entryOf(rec); err != nil {
			return nil, err
		}
		r.visibilityFilter(caller, ownerOf(rec)).FilterLogEntry(&out.Decisions[i])
	}
	return out, nil
}

func entryOf(rec *audit.Record) (contract.DecisionEntry, error) {
	e := contract.DecisionEntry{
		At: rec.At, RequestID: rec.RequestID, TraceID: rec.TraceID, Tenant: rec.Tenant, Subject: rec.Subject, Status: rec.Status,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}, Erased: rec.Content == nil,
	}
	if rec.Content == nil {
		return e, nil
	}
	var c history.Content
	if err := strictjson.Unmarshal(rec.Content, &c); err != nil {
		return e, fmt.Errorf("read the decision of request %s: %w", rec.RequestID, err)
	}
	e.Prompt = c.Prompt
	if c.Response != nil {
		e.Decision, e.Tasks, e.Omitted = c.Response.Decision, c.Response.Tasks, c.Response.Omitted
	}
	return e, nil
}
