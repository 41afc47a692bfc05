package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/datadir"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/replicas"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/sharedkeys"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/internal/tickets"
	"github.com/caprouter/caprouter/router"
)

// persistence contains the durable store and its users.
type persistence struct {
	store       *store.Store
	buckets     buckets
	contentKeys *contentkey.Keyring
	auditLog    *audit.Log
	requests    *requests.Store
	quotas      *storeQuotas
	events      *events.Stream
	tickets     *tickets.Service
	feedback    *feedback.Store
	sharedKeys  *sharedkeys.Directory // nil if the store is embedded
	members     *replicas.Membership  // nil until opened
	shared      bool                  // other processes may use the store
	owner       string                // id of this process among them
}

// buckets are the tables of the store.
type buckets struct {
	requests        *store.Bucket
	sessions        *store.Bucket
	idempotencyKeys *store.Bucket
	agents          *store.Bucket // registrations
	pins            *store.Bucket // of the definitions of tools
	mcpServers      *store.Bucket // registrations
	runs            *store.Bucket // orchestrations
	tickets         *store.Bucket
	feedback        *store.Bucket
	sharedKeys      *store.Bucket // nil if the store is embedded
}

// Shares of the store's bytes. Values that are too long for a message count in the share
// that they belong to.
const (
	shareAudit           = 0.5
	shareRequests        = 0.2
	shareSessions        = 0.03
	shareIdempotencyKeys = 0.03
	shareTickets         = 0.04
	shareAgents          = 0.03
	sharePins            = 0.02
	shareRuns            = 0.04
	shareFeedback        = 0.02
	shareMCPServers      = 0.01
)

// Retention of idempotency keys and tickets after their last use.
const (
	idempotencyKeyAge = 24 * time.Hour
	ticketAge         = 365 * 24 * time.Hour
)

// openPersistence opens the store and its tables, and locks the data directory.
func (c *serverCore) openPersistence(ctx context.Context, opts *Options, used bool, redactor *redact.Redactor) error {
	p := &persistence{owner: router.NewID(), shared: c.cfg.Store.URL != "", quotas: c.newQuotas()}
	c.persistence = p // so that close releases it if a later step fails
	var err error
	p.store, err = store.Open(ctx, store.Config{
		Dir: c.cfg.DataDir, URL: c.cfg.Store.URL, Replication: c.cfg.Store.Replication, SyncEvery: c.cfg.Store.SyncInterval(),
		MaxBytes: c.cfg.Store.MaxBytes(), Owner: p.owner, Logger: c.log,
	})
	if err != nil {
		return err
	}
	if p.members, err = c.openMembership(ctx, opts, used); err != nil {
		return err
	}
	if err := c.openContentKeys(ctx, opts); err != nil {
		return err
	}
	c.telemetry.Metrics().ObserveStore(func() telemetry.StoreState {
		s := p.store.Status()
		return telemetry.StoreState{Writable: s.Ready && s.Err == nil, UsedBytes: s.Used}
	})
	c.telemetry.Metrics().ObserveTenants(p.heaviestTenants)
	err = c.openAuditLog(ctx, used)
	if err == nil {
		err = c.openTables(ctx)
	}
	if err == nil {
		err = c.openTickets(ctx, opts, redactor)
	}
	if err != nil {
		return errors.Join(err, p.forgetKeyring(ctx, err))
	}
	engine := ""
	if c.cfg.Store.URL == "" {
		engine = store.EngineVersion
	}
	if err := datadir.Complete(c.cfg.DataDir, engine); err != nil {
		// The directory is usable: the next start completes it.
		c.log.Warn("cannot mark the format of the data directory", "error", err)
	}
	return nil
}

// openMembership makes this process one of the replicas that share the store. Its data
// directory is locked, so no other process has its name.
func (c *serverCore) openMembership(ctx context.Context, opts *Options, used bool) (*replicas.Membership, error) {
	p := c.persistence
	if c.cfg.Store.URL == "" {
		return replicas.Alone(datadir.MainReplica, p.owner, opts.Version), nil
	}
	name, err := datadir.Replica(c.cfg.DataDir, used)
	if err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	return replicas.Open(ctx, replicas.Config{
		Store: p.store, Name: name, Owner: p.owner, Version: opts.Version, Logger: c.log,
	})
}

func (c *serverCore) openAuditLog(ctx context.Context, used bool) error {
	p, retention := c.persistence, &c.cfg.Store.Retention
	log, err := p.store.Log(ctx, audit.LogConfig(shareAudit))
	if err != nil {
		return err
	}
	var heads *store.Bucket
	if c.cfg.Store.URL != "" {
		if heads, err = p.store.Bucket(ctx, audit.HeadsConfig()); err != nil {
			return err
		}
	}
	p.auditLog, err = audit.Open(ctx, audit.Config{
		Log: log, Writer: p.members.Name(), Heads: heads, Keys: p.contentKeys, Signer: c.keys, Members: c.keys.VerifyPeer,
		HeadFile: filepath.Join(c.cfg.DataDir, audit.HeadFile),
		Retention: audit.Retention{
			Contents: config.Duration(retention.Decisions), Chain: config.Duration(retention.Audit),
			// Below the share, because trimming a log first writes a checkpoint to it.
			MaxBytes: int64(0.9 * shareAudit * float64(c.cfg.Store.MaxBytes())),
			Share:    c.cfg.TenantShare(), KeepFacts: c.cfg.Auth.Mode != config.AuthNone && c.cfg.Audit.Required,
		},
		OnEvict: c.reportTrim(telemetry.PartAudit),
		Used:    used,
		Logger:  c.log, OnWrite: c.telemetry.Metrics().RecordAuditWrite,
	})
	return err
}

// openTables opens the buckets at the same time: a cluster under load takes long for each.
func (c *serverCore) openTables(ctx context.Context) (err error) {
	p := c.persistence
	requestAge := config.Duration(c.cfg.Store.Retention.Requests)
	tables := []struct {
		bucket **store.Bucket
		cfg    store.BucketConfig
	}{
		{&p.buckets.requests, store.BucketConfig{
			Name: "REQUESTS", MaxAge: requestAge, Share: shareRequests, OnWrite: p.quotas.requests.Written, Keys: p.contentKeys,
		}},
		{&p.buckets.sessions, store.BucketConfig{
			Name: "SESSIONS", MaxAge: time.Duration(c.cfg.Session.TTLS) * time.Second, Share: shareSessions,
			OnWrite: p.quotas.sessions.Written, Keys: p.contentKeys,
		}},
		{&p.buckets.runs, store.BucketConfig{
			Name: "ORCHESTRATIONS", MaxAge: requestAge, Share: shareRuns, OnWrite: p.quotas.runs.Written, Keys: p.contentKeys,
		}},
		{&p.buckets.tickets, store.BucketConfig{
			Name: "TICKETS", MaxAge: ticketAge, Share: shareTickets, OnWrite: p.quotas.tickets.Written, Keys: p.contentKeys,
		}},
		{&p.buckets.feedback, store.BucketConfig{
			Name: feedback.BucketName, MaxAge: config.Duration(c.cfg.Store.Retention.Decisions), Share: shareFeedback,
			OnWrite: p.quotas.feedback.Written, Keys: p.contentKeys,
		}},
		// The others have no content of callers: they are not encrypted. Keys are hashes.
		{&p.buckets.idempotencyKeys, store.BucketConfig{Name: "IDEMPOTENCY", MaxAge: idempotencyKeyAge, Share: shareIdempotencyKeys, OnWrite: p.quotas.idempotencyKeys.Written}},
		{&p.buckets.agents, store.BucketConfig{Name: "AGENTS", Share: shareAgents, KeyTTL: c.cfg.Store.URL != ""}}, // watched by replicas
		{&p.buckets.pins, store.BucketConfig{Name: "MCP_PINS", Share: sharePins}},
		// Its user encrypts the values, because replicas watch them.
		{&p.buckets.mcpServers, store.BucketConfig{Name: mcphost.BucketName, Share: shareMCPServers, KeyTTL: c.cfg.Store.URL != ""}},
	}
	errs := make([]error, len(tables))
	run.ForEach(ctx, len(tables), len(tables), func(ctx context.Context, i int) {
		*tables[i].bucket, errs[i] = p.store.Bucket(ctx, tables[i].cfg)
	})
	for _, err := range errs { // the first is enough: a missing key is missing for all
		if err != nil {
			return err
		}
	}
	p.requests = requests.NewStore(p.buckets.requests, p.quotas.requests)
	p.feedback = feedback.NewStore(p.buckets.feedback, p.quotas.feedback, c.log)
	p.events, err = events.Open(ctx, p.store, events.Config{HasEnded: p.requests.HasEnded, Logger: c.log})
	return err
}

func (c *serverCore) openTickets(ctx context.Context, opts *Options, redactor *redact.Redactor) error {
	m := c.telemetry.Metrics()
	cfg := tickets.Config{
		Bucket: c.persistence.buckets.tickets, Quota: c.persistence.quotas.tickets, NewID: router.NewID, Logger: c.log, AllowPlainHTTP: c.cfg.Dispatch.AllowPlainHTTP, MaskText: redactor.RedactText,
		OnProposed: func(joined bool) {
			if joined {
				m.RecordTicket(telemetry.TicketJoined)
			} else {
				m.RecordTicket(telemetry.TicketOpened)
			}
		},
		OnDelivered: m.RecordWebhook,
		Catalogue: func() *capabilities.Catalogue { // determines what a reader may see
			if c.router == nil || c.router.View() == nil { // not installed yet
				return nil
			}
			return c.router.View().Catalogue
		},
	}
	if c.cfg.Store.URL != "" {
		cfg.Replicas = &tickets.Replicas{Owner: c.persistence.owner, IsLive: c.persistence.members.IsLive, Messages: c.persistence.store}
	}
	if hook := &c.cfg.Tickets.Webhook; hook.URL != "" {
		secret, _ := opts.EnvLookup()(hook.SecretEnv)
		if secret == "" {
			return fmt.Errorf("tickets.webhook: the variable %s, which secret_env names, is not set", hook.SecretEnv)
		}
		cfg.Webhook = &tickets.Webhook{URL: hook.URL, Secret: llm.NewSecret(secret)}
	}
	var err error
	c.persistence.tickets, err = tickets.Open(ctx, cfg)
	return err
}

// routerStorage returns the durable dependencies of the router.
func (p *persistence) routerStorage(cfg config.Audit) router.Storage {
	storage := router.Storage{
		AuditLog: p.auditLog, AuditOptional: !cfg.Required, AnswerFirst: cfg.Outcome == config.OutcomeInBackground, Requests: p.requests, Events: p.events,
		Sessions: p.buckets.sessions, SessionQuota: p.quotas.sessions, IdempotencyKeys: p.buckets.idempotencyKeys, IdempotencyQuota: p.quotas.idempotencyKeys, Tickets: p.tickets, Feedback: p.feedback, Owner: p.owner,
		IsLive: p.members.IsLive,
	}
	if p.shared {
		storage.Messages = p.store
	}
	return storage
}

// startBackground starts the background work of the store.
func (p *persistence) startBackground(s *Server) {
	s.group.Go("events", p.events.Run)
	s.group.Go("tickets", p.tickets.Run)
	if p.sharedKeys != nil {
		s.group.Go("publish keys", p.sharedKeys.Run)
		s.group.Go("follow keys", p.sharedKeys.Follow)
	}
	s.group.Go("own the store", func(ctx context.Context) error {
		select {
		case <-p.store.OwnershipLost():
		case <-p.auditLog.Fenced():
			p.store.LoseOwnership(fmt.Errorf("%w: another process writes to the audit log", store.ErrLocked))
		case <-ctx.Done():
			return nil
		}
		return fmt.Errorf("%w: this process stops, so that nothing is done twice", p.store.OwnershipError())
	})
}

// startCounting starts the background work that first reads all that is stored. It is for
// a server that routes, so that it does not delay the first View.
func (p *persistence) startCounting(s *Server) {
	p.auditLog.StartRetention() // also while the server stops, because requests that end are recorded
	s.group.Go("count the stored bytes of tenants", s.core.countQuotas)
}

// closeStore closes in reverse order of opening.
func (p *persistence) closeStore(ctx context.Context) error {
	if p.store == nil {
		return nil
	}
	var err error
	if p.auditLog != nil {
		err = p.auditLog.Close(ctx)
	}
	if p.sharedKeys != nil {
		p.sharedKeys.Close(ctx)
	}
	if p.members != nil { // after the router, because the others take over its requests
		err = errors.Join(err, p.members.Close(ctx))
	}
	return errors.Join(err, p.store.Close())
}
