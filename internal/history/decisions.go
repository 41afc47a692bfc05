package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Decisions returns a page of the decision log with the entries that the caller may
// see.
func (s *Service) Decisions(ctx context.Context, q contract.DecisionQuery, caller *contract.Caller) (*contract.DecisionPage, error) {
	if err := s.cfg.Recording.Await(ctx, q.RequestID); err != nil {
		return nil, s.storeError(ctx, "the decision log cannot be read", err)
	}
	verdicts, err := s.decisionFeedback(ctx, q, caller)
	if err != nil {
		return nil, err
	}
	page, err := readDecisions(ctx, s.cfg.Log, s.cfg.Catalogue(), q, caller, verdicts)
	if err != nil && !errors.Is(err, errUnreadableEntry) {
		if e, ok := errors.AsType[*contract.Error](err); ok {
			return nil, e
		}
		return nil, s.storeError(ctx, "the decision log cannot be read", err)
	}
	if err == nil && verdicts == nil {
		s.addFeedback(ctx, page.Decisions, caller)
	}
	return page, err
}

// decisionFeedback returns the feedback that the caller may see by request, if the query selects
// by it; else nil.
func (s *Service) decisionFeedback(ctx context.Context, q contract.DecisionQuery, caller *contract.Caller) (map[string][]contract.Feedback, error) {
	if q.Feedback == "" {
		return nil, nil
	}
	all, err := s.cfg.Feedback.All(ctx)
	if err != nil {
		return nil, s.storeError(ctx, "the feedback cannot be read", err)
	}
	return filterAllFeedback(all, caller), nil
}

func filterAllFeedback(all map[string][]feedback.Entry, caller *contract.Caller) map[string][]contract.Feedback {
	visible := make(map[string][]contract.Feedback, len(all))
	for id, entries := range all {
		visible[id] = filterFeedback(entries, caller)
	}
	return visible
}

// maxFeedbackReads bounds the concurrent reads for one page.
const maxFeedbackReads = 16

// addFeedback adds the feedback that the caller may see to the entries of a page. An error of
// the store is logged: the decisions are more important.
func (s *Service) addFeedback(ctx context.Context, entries []contract.DecisionEntry, caller *contract.Caller) {
	var failed atomic.Pointer[error]
	run.ForEach(ctx, maxFeedbackReads, len(entries), func(ctx context.Context, i int) {
		list, err := s.cfg.Feedback.Of(ctx, entries[i].RequestID)
		if err != nil {
			failed.Store(&err)
		}
		entries[i].Feedback = filterFeedback(list, caller)
	})
	if err := failed.Load(); err != nil {
		_ = s.storeError(ctx, "the feedback cannot be read", *err)
	}
}

// Reader reads an audit log. *audit.Log and *audit.Copy implement it.
type Reader interface {
	Read(ctx context.Context, q audit.Query) (audit.Page, error)
}

// ReadDecisions returns a page of a decision log with everything in it, for a person who
// may read the files of the log, and with this feedback, by the ids of requests.
func ReadDecisions(ctx context.Context, log Reader, verdicts map[string][]feedback.Entry, q contract.DecisionQuery) (*contract.DecisionPage, error) {
	reader := &contract.Caller{AllScopes: true, AllAgents: true}
	return readDecisions(ctx, log, &capabilities.Catalogue{}, q, reader, filterAllFeedback(verdicts, reader))
}

var errUnreadableEntry = errors.New("unreadable entry")

func readDecisions(
	ctx context.Context, log Reader, catalogue *capabilities.Catalogue, q contract.DecisionQuery, caller *contract.Caller,
	verdicts map[string][]contract.Feedback,
) (*contract.DecisionPage, error) {
	var unreadable error
	decisions := &contract.DecisionPage{Decisions: []contract.DecisionEntry{}}
	page, err := log.Read(ctx, audit.Query{
		Since: firstTime(q), Cursor: q.Cursor, Limit: q.Limit,
		Filter: func(rec *audit.Record) bool {
			if unreadable != nil || !selectsFeedback(q, verdicts[rec.RequestID]) || !selectsRecord(q, rec, caller) {
				return false
			}
			entry, err := newEntry(rec)
			if err != nil {
				unreadable = err
				return false
			}
			entry.Feedback = verdicts[rec.RequestID]
			visibility.NewFilter(catalogue, caller, recordCaller(rec)).FilterLogEntry(&entry)
			if !selectsDecision(q, entry.Decision) {
				return false
			}
			decisions.Decisions = append(decisions.Decisions, entry)
			return true
		},
	})
	if unreadable != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadableEntry, unreadable)
	}
	if err != nil {
		return nil, err
	}
	decisions.NextCursor = page.Next
	return decisions, nil
}

// clockSlack bounds the difference between the clock of a request id and that of the
// audit log.
const clockSlack = 5 * time.Minute

// firstTime is the time from which the log is read. A request has no records before
// the time in its id.
func firstTime(q contract.DecisionQuery) time.Time {
	if q.RequestID == "" {
		return q.Since
	}
	if from := TimeOfID(q.RequestID).Add(-clockSlack); from.After(q.Since) {
		return from
	}
	return q.Since
}

// selectsRecord compares the part of a record that is not erased.
func selectsRecord(q contract.DecisionQuery, rec *audit.Record, caller *contract.Caller) bool {
	found := storedRequest{id: rec.RequestID, owner: recordCaller(rec), outcome: rec}
	return (q.RequestID == "" || q.RequestID == rec.RequestID) &&
		(q.Outcome == "" || q.Outcome == rec.Status) &&
		(q.Agent == "" || slices.Contains(rec.Agents, q.Agent) && visibility.MaySeeAgent(caller, q.Agent)) &&
		found.isVisibleTo(caller)
}

// selectsDecision compares a decision as the caller sees it.
func selectsDecision(q contract.DecisionQuery, d *contract.Decision) bool {
	if q.Intent == "" && q.Source == "" && q.Below == 0 && q.Fallback == "" {
		return true
	}
	return d != nil &&
		(q.Intent == "" || q.Intent == d.Classification.Intent) &&
		(q.Source == "" || q.Source == d.Classification.Source) &&
		(q.Below == 0 || d.Classification.Confidence < q.Below) &&
		(q.Fallback == "" || d.FallbackUsed != nil && (q.Fallback == contract.AnyFallback || q.Fallback == *d.FallbackUsed))
}

// selectsFeedback compares the feedback that the caller sees.
func selectsFeedback(q contract.DecisionQuery, list []contract.Feedback) bool {
	return q.Feedback == "" || slices.ContainsFunc(list, func(f contract.Feedback) bool { return f.Verdict == q.Feedback })
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
	if err := strictjson.UnmarshalDeep(rec.Content, &c); err != nil {
		return e, fmt.Errorf("read the decision of request %s: %w", rec.RequestID, err)
	}
	e.Prompt = c.Prompt
	if c.Response != nil {
		e.Decision, e.Tasks, e.Omitted = c.Response.Decision, c.Response.Tasks, c.Response.Omitted
	}
	return e, nil
}
