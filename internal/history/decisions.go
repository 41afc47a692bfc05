package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Decisions returns a page of the decision log with the entries that the caller may
// see.
func (s *Service) Decisions(ctx context.Context, q contract.DecisionQuery, caller *contract.Caller) (*contract.DecisionPage, error) {
	page, err := s.cfg.Log.Read(ctx, audit.Query{
		Since: q.Since, Cursor: q.Cursor, Limit: q.Limit,
		Filter: func(rec *audit.Record) bool {
			found := storedRequest{id: rec.RequestID, owner: recordCaller(rec), outcome: rec}
			return (q.Outcome == "" || q.Outcome == rec.Status) &&
				(q.Agent == "" || slices.Contains(rec.Agents, q.Agent) && visibility.MaySeeAgent(caller, q.Agent)) &&
				found.isVisibleTo(caller)
		},
	})
	if err != nil {
		if e, ok := errors.AsType[*contract.Error](err); ok {
			return nil, e
		}
		return nil, s.storeError(ctx, "the decision log cannot be read", err)
	}
	decisions := &contract.DecisionPage{Decisions: make([]contract.DecisionEntry, len(page.Records)), NextCursor: page.Next}
	for i := range page.Records {
		rec := &page.Records[i]
		if decisions.Decisions[i], err = newEntry(rec); err != nil {
			return nil, err
		}
		s.filter(caller, recordCaller(rec)).FilterLogEntry(&decisions.Decisions[i])
	}
	return decisions, nil
}

func newEntry(rec *audit.Record) (contract.DecisionEntry, error) {
	e := contract.DecisionEntry{
		At: rec.At, RequestID: rec.RequestID, TraceID: rec.TraceID, Tenant: rec.Tenant, Subject: rec.Subject, Status: rec.Status,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}, Erased: rec.Content == nil,
	}
	if rec.Content == nil {
		return e, nil
	}
	var c Content
	if err := strictjson.Unmarshal(rec.Content, &c); err != nil {
		return e, fmt.Errorf("read the decision of request %s: %w", rec.RequestID, err)
	}
	e.Prompt = c.Prompt
	if c.Response != nil {
		e.Decision, e.Tasks, e.Omitted = c.Response.Decision, c.Response.Tasks, c.Response.Omitted
	}
	return e, nil
}
