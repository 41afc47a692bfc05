package tickets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// JoinThreshold is the minimum similarity with which a request joins a ticket. If it
// is lower, unrelated requests share a ticket; if it is higher, one demand is split
// into many. docs/tickets.md has the figures.
const JoinThreshold = 0.3

// defaultMaxOpen bounds the open tickets of all tenants together, and thus the
// memory of a Service.
const defaultMaxOpen = 10_000

// Config configures a Service. Bucket and NewID are required.
type Config struct {
	Bucket  *store.Bucket
	Quota   *quota.Ledger // counts the bytes of the bucket, whose OnWrite is its Written; nil = no limit
	NewID   func() string // of tickets and webhook messages: letters, digits, - and _
	Webhook *Webhook      // nil = no notices are sent
	// Catalogue returns the current agents; nil = those of the newest request.
	Catalogue      func() *capabilities.Catalogue
	Replicas       *Replicas // nil = no other process changes the bucket
	AllowPlainHTTP bool      // allow a webhook on another host without TLS

	// MaskText masks the notes of closed tickets; nil = they are stored as they are. All
	// other texts are masked by the caller.
	MaskText func(string) string

	Now    func() time.Time // nil = time.Now
	Logger *slog.Logger     // nil = silent
	// OnProposed is called for each stored request, OnDelivered with the outcome of
	// each delivery attempt (DeliveredOK …). Either may be nil.
	OnProposed  func(joined bool)
	OnDelivered func(outcome string)
}

// Service groups unmet requests into tickets. Its methods may be called from any
// goroutine; a bucket has one Service in each process that shares it.
type Service struct {
	cfg       Config
	table     *store.Table[ticketRecord]
	index     *ticketIndex
	maxOpen   int            // limit of open tickets
	assigning chan struct{}  // mutex of assignTicket, so that two similar requests do not open two tickets; a channel, because waiting ends with the context
	sender    *webhookSender // nil without a webhook
	queue     *deliveryQueue
	others    coordinator

	// registry is the registry of the newest request, for suggestions without a
	// request.
	registry atomic.Pointer[fallback.Unmet]
}

// Open reads the bucket's tickets and returns their Service.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Bucket == nil || cfg.NewID == nil {
		return nil, errors.New("tickets: a bucket and ids are needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaskText == nil {
		cfg.MaskText = func(text string) string { return text }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Quota == nil {
		cfg.Quota = quota.Unlimited()
	}
	table := store.NewTable(cfg.Bucket, store.TableConfig[ticketRecord]{Prefix: keyPrefix, Encode: encodeRecord, Decode: decodeRecord})
	s := &Service{cfg: cfg, table: table, index: newIndex(), maxOpen: defaultMaxOpen, assigning: make(chan struct{}, 1), queue: newQueue(retryDelay)}
	if cfg.Webhook != nil {
		var err error
		if s.sender, err = newSender(cfg.Webhook, cfg.AllowPlainHTTP); err != nil {
			return nil, err
		}
	}
	s.others = onlyService{}
	if cfg.Replicas != nil {
		shared := newSharedService(s, cfg.Replicas)
		if err := shared.load(ctx); err != nil {
			return nil, fmt.Errorf("read the tickets: %w", err)
		}
		s.others = shared
	}
	if err := s.readTickets(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// readTickets reads the bucket's tickets into the index, and removes those that the bucket
// does not have any more.
func (s *Service) readTickets(ctx context.Context) error {
	gone := s.index.ids()
	err := s.table.Scan(ctx, func(row store.Row[ticketRecord], err error) error {
		delete(gone, row.Key)
		if err != nil { // one damaged ticket must not prevent the service of the others
			s.cfg.Logger.Error("ignoring a ticket that cannot be read", "ticket_id", row.Key, "error", err)
			return nil
		}
		s.indexRow(&row)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the tickets: %w", err)
	}
	for id := range gone {
		if err := s.refreshTicket(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// refreshTicket reads a ticket into the index. If there is no such ticket, it removes the
// one in the index and returns ErrNotFound.
func (s *Service) refreshTicket(ctx context.Context, id string) error {
	row, err := s.table.Get(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.removeFromIndex(id)
	case err == nil:
		s.indexRow(&row)
	}
	return err
}

// indexRow updates everything that is derived from a stored ticket.
func (s *Service) indexRow(row *store.Row[ticketRecord]) {
	s.index.put(row.Value, row.Revision)
	s.enqueueNotices(row.Value)
	if size, err := encodeRecord(row.Key, row.Value); err == nil {
		s.cfg.Quota.Load(row.Value.Payer, keyPrefix+row.Key, len(size), row.At)
	}
	s.releaseClosed(row.Value)
}

// removeFromIndex removes a ticket that the bucket does not have.
func (s *Service) removeFromIndex(id string) {
	s.index.remove(id)
	s.cfg.Quota.Written(keyPrefix+id, -1)
}

// ticketOwner is the owner of a ticket: a tenant, or all callers without a tenant
// from one issuer.
type ticketOwner struct{ tenant, issuer string }

func ownerOf(c *contract.Caller) ticketOwner {
	switch {
	case c == nil:
		return ticketOwner{}
	case c.Tenant == "":
		return ticketOwner{issuer: c.Issuer}
	}
	return ticketOwner{tenant: c.Tenant}
}

// payerOf returns whose share of the store a ticket of the caller uses.
func payerOf(c *contract.Caller) quota.Owner {
	if c == nil {
		return quota.Owner{}
	}
	return quota.OwnerOf(c)
}

// errNoChange ends an update that is not needed, or no longer possible.
var errNoChange = errors.New("nothing to change")

// errSearchAgain means that another replica has opened a ticket, which may be similar.
var errSearchAgain = errors.New("another replica opened a ticket")

// releaseClosed makes a closed ticket removable.
func (s *Service) releaseClosed(r *ticketRecord) {
	if !r.isOpen() {
		s.cfg.Quota.Release(keyPrefix + r.Ticket.TicketID)
	}
}

// updateTicket updates a ticket by compare-and-set, and its derived state: the index and
// the queue of notices. If fn returns an error, nothing is written, and updateTicket returns
// the error with the ticket as stored.
func (s *Service) updateTicket(ctx context.Context, id string, fn func(*ticketRecord) error) (*ticketRecord, error) {
	row, err := s.table.Update(ctx, id, fn)
	if errors.Is(err, store.ErrNotFound) {
		s.removeFromIndex(id)
	}
	if row.Value != nil {
		s.index.put(row.Value, row.Revision)
	}
	if err == nil {
		s.enqueueNotices(row.Value)
		s.releaseClosed(row.Value)
		s.others.announceChange(id)
	}
	return row.Value, err
}

// loadTicket reads a ticket, and removes a missing one from the index.
func (s *Service) loadTicket(ctx context.Context, id string) (*ticketRecord, error) {
	row, err := s.table.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		s.removeFromIndex(id)
	}
	return row.Value, err
}

// addNotice adds a webhook notice if there is a webhook.
func (s *Service) addNotice(r *ticketRecord, event string) {
	if s.sender != nil {
		r.addNotice(webhookNotice{ID: s.cfg.NewID(), Event: event, At: s.cfg.Now().UTC(), Owner: s.others.owner()})
	}
}

const keyPrefix = "ticket."
