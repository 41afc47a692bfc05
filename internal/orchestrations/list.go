package orchestrations

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/orchestrator"
)

// Limits of a page.
const (
	defaultPageSize = 100
	maxPageSize     = 1000
	maxListedGoal   = 200 // characters
)

// List returns a page of the runs that the caller may see, newest first. A run that begins
// between two pages does not move the others. Errors are *contract.Error.
func (s *Service) List(ctx context.Context, q contract.RunQuery, caller *contract.Caller) (*contract.RunPage, error) {
	before, err := parseCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	switch {
	case q.Limit == 0:
		q.Limit = defaultPageSize
	case q.Limit < 0, q.Limit > maxPageSize:
		return nil, invalidQuery("/limit", fmt.Sprintf("must be from 1 to %d", maxPageSize))
	}
	list := runList{limit: q.Limit}
	add := func(rec *orchestrator.Record) {
		switch {
		case !maySee(caller, rec), q.Status != "" && q.Status != rec.Status():
		case q.Cursor != "" && compareNewest(before, positionOf(rec)) >= 0: // on an earlier page
		default:
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

// position is the place of a run in a list.
type position struct {
	created time.Time
	id      string
}

func positionOf(rec *orchestrator.Record) position { return position{rec.CreatedAt, rec.ID} }

// compareNewest orders the newest run first.
func compareNewest(a, b position) int {
	return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.id, a.id))
}

// runList keeps summaries of the newest runs. One goroutine owns it.
type runList struct {
	limit     int
	summaries []contract.RunSummary
}

func summaryPosition(r *contract.RunSummary) position {
	return position{r.CreatedAt, r.OrchestrationID}
}

// add adds a run. The list is sorted and cut when it is twice as long as a page.
func (l *runList) add(rec *orchestrator.Record) {
	l.summaries = append(l.summaries, summarize(rec))
	if len(l.summaries) > 2*l.limit+1 {
		l.cut()
	}
}

// cut keeps one run more than the page has, which shows that there is another page.
func (l *runList) cut() {
	slices.SortFunc(l.summaries, func(a, b contract.RunSummary) int { return compareNewest(summaryPosition(&a), summaryPosition(&b)) })
	clear(l.summaries[min(l.limit+1, len(l.summaries)):])
	l.summaries = l.summaries[:min(l.limit+1, len(l.summaries))]
}

func (l *runList) page() *contract.RunPage {
	l.cut()
	page := &contract.RunPage{Orchestrations: []contract.RunSummary{}}
	page.Orchestrations = append(page.Orchestrations, l.summaries[:min(l.limit, len(l.summaries))]...)
	if len(l.summaries) > l.limit {
		page.NextCursor = encodeCursor(summaryPosition(&l.summaries[l.limit-1]))
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

// encodeCursor returns the cursor behind a run.
func encodeCursor(p position) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.created.Format(time.RFC3339Nano) + " " + p.id))
}

func parseCursor(text string) (position, error) {
	if text == "" {
		return position{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(raw), " ")
	created, badTime := time.Parse(time.RFC3339Nano, at)
	if err != nil || !ok || badTime != nil || !store.ValidID(id) {
		return position{}, invalidQuery("/cursor", "is not a cursor of an earlier page")
	}
	return position{created, id}, nil
}

func invalidQuery(pointer, detail string) error {
	e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
	e.Add(pointer, detail)
	return e
}
