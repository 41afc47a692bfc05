package tickets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/lexical"
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
	Quota   *quota.Ledger // counts the bytes of the bucket, which tells it of its writes; nil = no limit
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
	d := &Service{cfg: cfg, table: table, index: newIndex(), maxOpen: defaultMaxOpen, assigning: make(chan struct{}, 1), queue: newQueue(retryDelay)}
	if cfg.Webhook != nil {
		var err error
		if d.sender, err = newSender(cfg.Webhook, cfg.AllowPlainHTTP); err != nil {
			return nil, err
		}
	}
	d.others = onlyService{}
	if cfg.Replicas != nil {
		shared := newSharedService(d, cfg.Replicas)
		if err := shared.load(ctx); err != nil {
			return nil, fmt.Errorf("read the tickets: %w", err)
		}
		d.others = shared
	}
	if err := d.readTickets(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// readTickets reads the bucket's tickets into the index, and removes those that the bucket
// does not have any more.
func (s *Service) readTickets(ctx context.Context) error {
	gone := s.index.ids()
	err := s.table.Scan(ctx, func(row store.Row[ticketRecord], err error) error {
		delete(gone, row.Key)
		if err != nil { // one damaged ticket must not prevent the service of the others
			s.cfg.Logger.Error("ignoring a ticket that cannot be read", "ticket_id", row.Key, "err", err)
			return nil
		}
		s.takeOverRow(&row)
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

// refreshTicket reads a ticket into the index, or removes it from there: ErrNotFound.
func (s *Service) refreshTicket(ctx context.Context, id string) error {
	row, err := s.table.Get(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.removeFromIndex(id)
	case err == nil:
		s.takeOverRow(&row)
	}
	return err
}

// takeOverRow updates everything that is derived from a stored ticket.
func (s *Service) takeOverRow(row *store.Row[ticketRecord]) {
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

// Demand is a request without an eligible agent. Its texts are masked.
type Demand struct {
	Unmet       *fallback.Unmet // with its Decision and its Caller, if there is one
	Seen        *fallback.Unmet // as visible to its caller; nil = Unmet
	RequestID   string
	Locale      string   // BCP 47; "" = unknown
	DataClasses []string // kinds of personal data that were masked in it
	DryRun      bool     // store nothing
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

func (d *Demand) owner() ticketOwner { return ownerOf(d.Unmet.Caller) }

// Preview returns the proposal of a process without tickets.
func Preview(d *Demand) *contract.Proposal {
	r := newRecord("", d)
	r.addRequest(d, 1, time.Time{})
	return r.newProposal(d, assignment{notStored: notStoredNoService})
}

// Propose stores the request in a similar open ticket of its tenant, or else in a
// new one, and returns the suggested agent. A request without a significant word is
// not stored, because all such requests would be similar. An error wraps one of
// package store or of the context; then it is not known whether the request was
// counted.
func (s *Service) Propose(ctx context.Context, dem *Demand) (*contract.Proposal, error) {
	if !lexical.HasContentWord(promptExcerpt(dem.Unmet.Prompt)) {
		r := newRecord("", dem)
		r.addRequest(dem, 1, s.cfg.Now())
		return r.newProposal(dem, assignment{notStored: notStoredWordless}), nil
	}
	if dem.DryRun {
		return s.dryRun(ctx, dem)
	}
	select {
	case s.assigning <- struct{}{}:
		defer func() { <-s.assigning }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for ticket assignment: %w", ctx.Err())
	}
	s.registry.Store(&fallback.Unmet{Catalogue: dem.Unmet.Catalogue})
	r, how, err := s.assignTicket(ctx, dem)
	if err != nil {
		return nil, err
	}
	if how.stored && s.cfg.OnProposed != nil {
		s.cfg.OnProposed(how.joined)
	}
	return r.newProposal(dem, how), nil
}

// errNoChange ends an update that is not needed, or no longer possible.
var errNoChange = errors.New("settled")

// errSearchAgain means that another replica has opened a ticket, which may be similar.
var errSearchAgain = errors.New("another replica opened a ticket")

// assignTicket finds the ticket of the request, or opens one.
func (s *Service) assignTicket(ctx context.Context, dem *Demand) (*ticketRecord, assignment, error) {
	for {
		id, similarity := s.index.findNearest(dem.owner(), promptExcerpt(dem.Unmet.Prompt))
		how := assignment{similarity: similarity, stored: true, joined: similarity >= JoinThreshold}
		if !how.joined {
			r, err := s.openTicket(ctx, dem, &how)
			if errors.Is(err, errSearchAgain) {
				continue
			}
			return r, how, err
		}
		r, err := s.updateTicket(ctx, id, func(r *ticketRecord) error {
			if !r.isOpen() || r.hasRequest(dem.RequestID) {
				return errNoChange
			}
			r.addRequest(dem, similarity, s.cfg.Now())
			if isMilestone(r.Ticket.Count) {
				s.addNotice(r, eventGrown)
			}
			return nil
		})
		switch {
		case errors.Is(err, errNoChange) && !r.isOpen(), errors.Is(err, store.ErrNotFound):
			// Closed or deleted: updateTicket has corrected the index.
		case errors.Is(err, errNoChange):
			how.joined = r.Ticket.Count > 1
			return r, how, nil
		default:
			return r, how, err
		}
	}
}

// openTicket opens a ticket. If too many are open, or the share of its payer is used
// up, the request gets a proposal, but no ticket.
func (s *Service) openTicket(ctx context.Context, dem *Demand, how *assignment) (*ticketRecord, error) {
	r := newRecord(s.cfg.NewID(), dem)
	r.addRequest(dem, 1, s.cfg.Now())
	if !s.hasCapacity(ctx) {
		s.cfg.Logger.WarnContext(ctx, "too many open tickets: a request is not stored; close some", "open", s.maxOpen)
		how.notStored, how.stored = notStoredFull, false
		return r, nil
	}
	if !s.hasRoom(ctx, r.Payer) {
		how.notStored, how.stored = notStoredQuota, false
		return r, nil
	}
	if reserved, err := s.others.reserveOpening(ctx, dem.owner(), r.Ticket.TicketID); err != nil {
		return nil, err
	} else if !reserved {
		return nil, errSearchAgain
	}
	s.cfg.Quota.Count(r.Payer, keyPrefix+r.Ticket.TicketID)
	s.addNotice(r, eventOpened)
	revision, err := s.table.Create(ctx, r.Ticket.TicketID, r)
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		s.cfg.Quota.Withdraw(keyPrefix + r.Ticket.TicketID)
		return nil, fmt.Errorf("open a ticket: %w", err)
	}
	// After ErrUnavailable the ticket may exist. If it does not, the next request
	// that would join it corrects the index.
	s.index.put(r, revision)
	if err != nil {
		return nil, fmt.Errorf("open a ticket: %w", err)
	}
	s.enqueueNotices(r)
	s.others.announceChange(r.Ticket.TicketID)
	return r, nil
}

// hasCapacity reports whether another ticket may be opened. Open tickets that the
// bucket has dropped because of their age do not count.
func (s *Service) hasCapacity(ctx context.Context) bool {
	for {
		id, full := s.index.checkFull(s.maxOpen)
		if !full {
			return true
		}
		if _, err := s.table.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
			return false
		}
		s.index.remove(id)
	}
}

// hasRoom reports whether the payer's share has room for another ticket. The oldest
// closed tickets of a payer without room are removed.
func (s *Service) hasRoom(ctx context.Context, payer quota.Owner) bool {
	if share := int(s.cfg.Quota.Share() * float64(s.maxOpen)); s.index.countOpen(payer) >= share {
		return false
	}
	remove := func(key string) error {
		id := strings.TrimPrefix(key, keyPrefix)
		if err := s.table.Delete(ctx, id); err != nil {
			return err
		}
		s.index.remove(id)
		s.others.announceChange(id)
		return nil
	}
	err := s.cfg.Quota.Trim(payer, "", remove)
	if err == nil {
		err = s.cfg.Quota.Free(s.cfg.Quota.Surplus(fullShare), remove)
	}
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "cannot make room for a ticket", "err", err)
	}
	return s.cfg.Quota.Excess(payer) == 0
}

// fullShare is the part of the bucket above which closed tickets of the heaviest payer
// are removed.
const fullShare = 0.9

// releaseClosed makes a closed ticket removable.
func (s *Service) releaseClosed(r *ticketRecord) {
	if !r.isOpen() {
		s.cfg.Quota.Release(keyPrefix + r.Ticket.TicketID)
	}
}

// dryRun returns the proposal without storing anything.
func (s *Service) dryRun(ctx context.Context, dem *Demand) (*contract.Proposal, error) {
	id, similarity := s.index.findNearest(dem.owner(), promptExcerpt(dem.Unmet.Prompt))
	r, how := newRecord("", dem), assignment{similarity: similarity}
	if similarity >= JoinThreshold {
		stored, err := s.loadTicket(ctx, id)
		switch {
		case err == nil && stored.isOpen():
			r, how.joined = stored, true
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	r.addRequest(dem, similarity, s.cfg.Now())
	r.Ticket.TicketID = ""
	return r.newProposal(dem, how), nil
}

// updateTicket updates a ticket by compare-and-set, and its derived state: the index and
// the queue of notices. If fn returns an error, change writes nothing and returns it
// with the ticket as stored.
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
