package orchestrations

import (
	"context"
	"errors"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/pagination"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/orchestrator"
)

const maxListedGoal = 200 // characters

// List returns a page of the runs that the caller may see, newest first. A run that begins
// between two pages does not move the others. Errors are *contract.Error.
func (s *Service) List(ctx context.Context, q contract.RunQuery, caller *contract.Caller) (*contract.RunPage, error) {
	after, err := pagination.ParseCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	size, err := pagination.Size(q.Limit)
	if err != nil {
		return nil, err
	}
	list := runList{size: size}
	add := func(rec *orchestrator.Record) {
		at := pagination.Position{Created: rec.CreatedAt, ID: rec.ID}
		if maySee(caller, rec) && (q.Status == "" || q.Status == rec.Status()) && after.Before(at) {
			list.add(rec)
		}
	}
	switch q.Status {
	case contract.OrchestrationRunning, contract.OrchestrationWaiting:
		err = s.store.scanOpen(ctx, add)
	default:
		err = s.store.scan(ctx, add)
	}
	if err != nil {
		return nil, store.CallerError(ctx, s.cfg.Logger, "the orchestrations cannot be listed", err)
	}
	return list.page(), nil
}

// scan calls fn for every record that can be decoded.
func (s *runStore) scan(ctx context.Context, fn func(*orchestrator.Record)) error {
	return s.records.Scan(ctx, func(row store.Row[orchestrator.Record], err error) error {
		if err == nil { // otherwise it is damaged
			fn(row.Value)
		}
		return nil
	})
}

// scanOpen is scan of the runs in the index, which are those that have not ended. It reads no
// others.
func (s *runStore) scanOpen(ctx context.Context, fn func(*orchestrator.Record)) error {
	ids, err := s.open.Keys(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		rec, err := s.get(ctx, id)
		switch {
		case err == nil:
			fn(rec)
		case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable):
			return err
		}
	}
	return nil
}

// runList keeps summaries of the newest runs. One goroutine owns it.
type runList struct {
	size      int // of a page
	summaries []contract.RunSummary
}

func position(r *contract.RunSummary) pagination.Position {
	return pagination.Position{Created: r.CreatedAt, ID: r.OrchestrationID}
}

// add adds a run. The list is sorted and cut when it is twice as long as a page.
func (l *runList) add(rec *orchestrator.Record) {
	l.summaries = append(l.summaries, summarize(rec))
	if len(l.summaries) > 2*l.size+1 {
		l.cut()
	}
}

// cut keeps one run more than the page has, which shows that there is another page.
func (l *runList) cut() {
	slices.SortFunc(l.summaries, func(a, b contract.RunSummary) int { return position(&a).Compare(position(&b)) })
	clear(l.summaries[min(l.size+1, len(l.summaries)):])
	l.summaries = l.summaries[:min(l.size+1, len(l.summaries))]
}

func (l *runList) page() *contract.RunPage {
	l.cut()
	page := &contract.RunPage{Orchestrations: []contract.RunSummary{}}
	page.Orchestrations = append(page.Orchestrations, l.summaries[:min(l.size, len(l.summaries))]...)
	if len(l.summaries) > l.size {
		page.NextCursor = position(&l.summaries[l.size-1]).Cursor()
	}
	return page
}

func summarize(rec *orchestrator.Record) contract.RunSummary {
	summary := contract.RunSummary{
		OrchestrationID: rec.ID, Status: rec.Status(), State: string(rec.State), Reason: rec.Reason, Goal: rec.Goal.Goal,
		CreatedAt: rec.CreatedAt, EndedAt: rec.EndedAt,
	}
	if runes := []rune(summary.Goal); len(runes) > maxListedGoal {
		summary.Goal = string(runes[:maxListedGoal]) + "…"
	}
	for i := range rec.Gates {
		if g := &rec.Gates[i]; g.Decision == "" && !rec.State.Terminal() {
			summary.Gates = append(summary.Gates, *g)
		}
	}
	return summary
}
