package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/contentkey"
)

// auditedRequest contains the records of one request in the audit log.
type auditedRequest struct {
	decisions, outcomes []uint64 // positions in the chain
	status              contract.Status
}

// AuditedRequests are the records of the audit log by request.
type AuditedRequests struct {
	byID    map[string]*auditedRequest
	Trimmed uint64    // records
	Evicted int       // passes that removed contents to make room
	begin   time.Time // of the first record if older ones were trimmed, else zero
}

// ReadAudit reads the audit log of a data directory.
func ReadAudit(ctx context.Context, dataDir string) (*AuditedRequests, error) {
	keys, err := contentkey.OpenExisting(dataDir)
	if err != nil {
		return nil, err
	}
	log, err := audit.OpenCopy(ctx, dataDir, keys)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	all := &AuditedRequests{byID: map[string]*auditedRequest{}}
	first := true
	err = log.Walk(ctx, func(rec *audit.Record) {
		if first && rec.Position > 1 {
			all.Trimmed, all.begin = rec.Position-1, rec.At
		}
		first = false
		switch rec.Kind {
		case audit.KindDecision:
			of := all.recordsOf(rec.RequestID)
			of.decisions = append(of.decisions, rec.Position)
		case audit.KindOutcome:
			of := all.recordsOf(rec.RequestID)
			of.outcomes, of.status = append(of.outcomes, rec.Position), rec.Status
		case audit.KindAdmin:
			if rec.Event == audit.EventEvict {
				all.Evicted++
			}
		}
	})
	return all, err
}

// CountRequests returns the number of requests in the audit log.
func (a *AuditedRequests) CountRequests() int { return len(a.byID) }

func (a *AuditedRequests) recordsOf(id string) *auditedRequest {
	if a.byID[id] == nil {
		a.byID[id] = &auditedRequest{}
	}
	return a.byID[id]
}

// trimSlack is how much the times of records in a chain may be out of order.
const trimSlack = time.Second

// mayBeTrimmed reports whether records of the request may have been trimmed.
func (a *AuditedRequests) mayBeTrimmed(id string) bool {
	return !a.begin.IsZero() && !requestTime(id).After(a.begin.Add(trimSlack))
}

// requestTime returns the time in a request id (UUIDv7), zero if there is none.
func requestTime(id string) time.Time {
	digits := strings.ReplaceAll(id, "-", "")
	ms, err := strconv.ParseInt(digits[:min(len(digits), 12)], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// CheckAudit compares the audit log with what callers and agents saw. A request that
// reached an agent has one decision record, and every request has one outcome record
// behind it, with the status of its response, unless the router was killed before it
// recorded a response that its caller had.
func (l *Ledger) CheckAudit(all *AuditedRequests) []CheckResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	dispatched := map[string]bool{}
	for _, e := range l.executions {
		dispatched[e.request] = true
	}
	ids := maps.Clone(dispatched)
	for _, id := range l.accepted {
		ids[id] = true
	}
	for id := range all.byID {
		ids[id] = true
	}
	var decisions, outcomes, statuses []string
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		rec := cmp.Or(all.byID[id], &auditedRequest{})
		m, n := len(rec.decisions), len(rec.outcomes)
		complete := !all.mayBeTrimmed(id)
		what := fmt.Sprintf("%s: decision records %v, outcome records %v", id, rec.decisions, rec.outcomes)
		if m > 1 || m == 0 && dispatched[id] && complete {
			decisions = append(decisions, what)
		}
		if n > 1 || n == 0 && complete || m == 1 && n == 1 && rec.outcomes[0] < rec.decisions[0] {
			outcomes = append(outcomes, what)
		}
		if p := l.requests[id]; n == 1 && p != nil && p.answer != nil && p.answer.Status != rec.status && !p.unrecorded {
			statuses = append(statuses, fmt.Sprintf("%s: %s in the audit log, %s in the response", id, rec.status, p.answer.Status))
		}
	}
	return []CheckResult{
		{"a dispatched request without exactly one decision record", decisions},
		{"a request without exactly one outcome record", outcomes},
		{"the audit log and the response differ in the status", statuses},
	}
}
