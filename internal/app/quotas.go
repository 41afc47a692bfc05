package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/loglimit"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// storeQuotas divide the parts of the store between tenants.
type storeQuotas struct {
	requests, sessions, idempotencyKeys, tickets, runs, feedback *quota.Ledger
}

func (c *serverCore) newQuotas() *storeQuotas {
	part := func(name, metric string, share float64, cfg quota.Config) *quota.Ledger {
		cfg.Part, cfg.Share = name, c.cfg.TenantShare()
		cfg.Limit = int64(share * float64(c.cfg.Store.MaxBytes()))
		cfg.OnTrim = c.reportTrim(metric)
		return quota.New(cfg)
	}
	return &storeQuotas{
		requests: part("asynchronous requests", telemetry.PartRequests, shareRequests,
			quota.Config{MaxAge: config.Duration(c.cfg.Store.Retention.Requests), Removable: true, Held: true}),
		sessions: part("sessions", telemetry.PartSessions, shareSessions,
			quota.Config{MaxAge: time.Duration(c.cfg.Session.TTLS) * time.Second, Removable: true}),
		idempotencyKeys: part("idempotency keys", "", shareIdempotencyKeys, quota.Config{MaxAge: idempotencyKeyAge}),
		runs: part("orchestrations", telemetry.PartRuns, shareRuns,
			quota.Config{MaxAge: config.Duration(c.cfg.Store.Retention.Requests), Removable: true, Held: true}),
		feedback: part("feedback", telemetry.PartFeedback, shareFeedback,
			quota.Config{MaxAge: config.Duration(c.cfg.Store.Retention.Decisions), Removable: true}),
		tickets: part("tickets", telemetry.PartTickets, shareTickets, quota.Config{MaxAge: ticketAge, Removable: true, Held: true}),
	}
}

// reportTrim returns a function that counts the values that were removed before their
// retention, and logs a warning now and then.
func (c *serverCore) reportTrim(part string) func(quota.Owner, int) {
	ctx := loglimit.With(context.Background(), "trimmed "+part)
	return func(owner quota.Owner, values int) {
		c.telemetry.Metrics().RecordEarlyRemoval(part, values)
		c.log.WarnContext(ctx, "stored values were removed before their retention, to make room (store.tenant_share)",
			"part", part, "tenant", owner.String(), "values", values)
	}
}

// Interval of the counts of what other replicas have stored. A count reads the bucket, so
// it is less frequent if that takes long.
const (
	recountInterval = 10 * time.Minute
	recountShare    = 50 // a count takes at most this part of the time
)

// countQuotas counts the values that were stored before the start. Until it has ended, the
// ledgers count less than the store contains. If other replicas use the store, it counts
// again regularly, until ctx ends.
func (c *serverCore) countQuotas(ctx context.Context) error {
	p := c.persistence
	begin := time.Now()
	c.reportCount(ctx, errors.Join(p.loadRequests(ctx), p.loadSessions(ctx), p.loadIdempotencyKeys(ctx), p.feedback.LoadQuota(ctx), c.runs.LoadQuota(ctx)))
	for c.cfg.Store.URL != "" {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(recountInterval, recountShare*time.Since(begin))):
		}
		begin = time.Now()
		c.reportCount(ctx, errors.Join(p.recount(ctx), p.quotas.runs.Recount(func() error { return c.runs.LoadQuota(ctx) })))
	}
	return nil
}

func (c *serverCore) reportCount(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		c.log.ErrorContext(ctx, "not all stored bytes of tenants are counted", "error", err)
	}
}

// recount counts what all replicas have stored. The ledger of the tickets follows them.
func (p *persistence) recount(ctx context.Context) error {
	return errors.Join(
		p.quotas.requests.Recount(func() error { return p.loadRequests(ctx) }),
		p.quotas.sessions.Recount(func() error { return p.loadSessions(ctx) }),
		p.quotas.idempotencyKeys.Recount(func() error { return p.loadIdempotencyKeys(ctx) }),
		p.quotas.feedback.Recount(func() error { return p.feedback.LoadQuota(ctx) }),
	)
}

func (p *persistence) loadRequests(ctx context.Context) error {
	return p.requests.LoadQuota(ctx, p.buckets.requests)
}

func (p *persistence) loadSessions(ctx context.Context) error {
	return session.LoadQuota(ctx, p.buckets.sessions, p.quotas.sessions)
}

func (p *persistence) loadIdempotencyKeys(ctx context.Context) error {
	return idempotency.LoadQuota(ctx, p.buckets.idempotencyKeys, p.quotas.idempotencyKeys)
}

// maxTenantLabels bounds the tenants in the metrics.
const maxTenantLabels = 10

// heaviestTenants returns the tenants with the most stored bytes.
func (p *persistence) heaviestTenants() []telemetry.TenantBytes {
	total := map[quota.Owner]int64{}
	add := func(usage map[quota.Owner]int64) {
		for owner, bytes := range usage {
			total[owner] += bytes
		}
	}
	for _, part := range []*quota.Ledger{p.quotas.requests, p.quotas.sessions, p.quotas.idempotencyKeys, p.quotas.tickets, p.quotas.runs, p.quotas.feedback} {
		add(part.Usage())
	}
	if p.auditLog != nil {
		add(p.auditLog.Usage())
	}
	heaviest := slices.SortedFunc(maps.Keys(total), func(a, b quota.Owner) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(a.String(), b.String()))
	})
	list := make([]telemetry.TenantBytes, min(len(heaviest), maxTenantLabels))
	for i := range list {
		list[i] = telemetry.TenantBytes{Tenant: heaviest[i].String(), Bytes: total[heaviest[i]]}
	}
	return list
}
