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
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/store"
)

// JoinThreshold is the similarity from which on a request joins a ticket. Lower, and
// requests of another kind hide in a ticket; higher, and one demand falls apart
// into many. docs/tickets.md has the figures.
const JoinThreshold = 0.3

// defaultMaxOpen bounds the open tickets of all tenants together, and with them what a
// desk remembers.
const defaultMaxOpen = 10_000

// Config is what a Desk needs; Bucket and NewID are required.
type Config struct {
	Bucket  *store.Bucket
	NewID   func() string // of tickets and webhook messages: letters, digits, - and _
	Webhook *Webhook      // nil = nobody is told
	// Catalogue returns the agents there are now; nil = those of the newest request.
	Catalogue      func() *capabilities.Catalogue
	AllowPlainHTTP bool // the webhook may be another host's without TLS

	Now    func() time.Time // nil = time.Now
	Logger *slog.Logger     // nil = silent
	// Proposed is told of each request that was put on record, Delivered what came
	// of each try to tell the webhook (Delivered …). Either may be nil.
	OnProposed  func(joined bool)
	OnDelivered func(outcome string)
}

// Service gathers demand that nobody meets. Its methods may be called from any
// goroutine; one process has one Desk for a bucket.
type Service struct {
	cfg       Config
	table     *store.Table[ticketRecord]
	index     *ticketIndex
	maxOpen   int            // open tickets
	assigning chan struct{}  // held while a request finds or makes its ticket: two alike must not open two
	sender    *webhookSender // nil without a webhook
	queue     *deliveryQueue

	// registry is that of the newest request, for suggestions that are made
	// without one.
	registry atomic.Pointer[fallback.Unmet]
}

// Open reads the bucket's tickets and returns a desk for them.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Bucket == nil || cfg.NewID == nil {
		return nil, errors.New("tickets: a bucket and ids are needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	table := store.NewTable(cfg.Bucket, store.TableConfig[ticketRecord]{Prefix: keyPrefix, Encode: encodeRecord, Decode: decodeRecord})
	d := &Service{cfg: cfg, table: table, index: newIndex(), maxOpen: defaultMaxOpen, assigning: make(chan struct{}, 1), queue: newQueue(retryDelay)}
	if cfg.Webhook != nil {
		var err error
		if d.sender, err = newSender(cfg.Webhook, cfg.AllowPlainHTTP); err != nil {
			return nil, err
		}
	}
	err := table.Scan(ctx, func(row store.Row[ticketRecord], err error) error {
		if err != nil { // one damaged ticket must not prevent the service of the others
			cfg.Logger.Error("ignoring a ticket that cannot be read", "ticket_id", row.Key, "err", err)
			return nil
		}
		d.index.put(row.Value, row.Revision)
		d.enqueueNotices(row.Value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tickets: %w", err)
	}
	return d, nil
}

// Demand is a request that nobody may serve. Its texts are masked.
type Demand struct {
	Unmet       *fallback.Unmet // with its Decision and, unless the request is nobody's, its Caller
	Seen        *fallback.Unmet // the same as its caller may see it; nil = Unmet
	RequestID   string
	Locale      string   // BCP 47; "" = not known
	DataClasses []string // kinds of personal data that were masked in it
	DryRun      bool     // nothing is stored
}

// ticketOwner is whose a ticket is: a tenant's, or that of the callers without one whom
// the same issuer vouches for.
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

func (d *Demand) owner() ticketOwner { return ownerOf(d.Unmet.Caller) }

// Preview is what is proposed where no tickets are kept.
func Preview(d *Demand) *contract.Proposal {
	r := newRecord("", d)
	r.addRequest(d, 1, time.Time{})
	return r.newProposal(d, assignment{notStored: notStoredNoService})
}

// Propose puts the request on record, in an open ticket of its tenant that is
// similar or else in a new one, and says what agent is missing. A request without a
// word that says what it is about is not put on record: all of these would be alike.
// An error wraps one of package store, or the context's; then the request may or may
// not be counted.
func (d *Service) Propose(ctx context.Context, dem *Demand) (*contract.Proposal, error) {
	if !lexical.HasContentWord(promptExcerpt(dem.Unmet.Prompt)) {
		r := newRecord("", dem)
		r.addRequest(dem, 1, d.cfg.Now())
		return r.newProposal(dem, assignment{notStored: notStoredWordless}), nil
	}
	if dem.DryRun {
		return d.dryRun(ctx, dem)
	}
	select {
	case d.assigning <- struct{}{}:
		defer func() { <-d.assigning }()
	case <-ctx.Done():
		return nil, fmt.Errorf("put a request into a ticket: %w", ctx.Err())
	}
	d.registry.Store(&fallback.Unmet{Catalogue: dem.Unmet.Catalogue})
	r, how, err := d.assignTicket(ctx, dem)
	if err != nil {
		return nil, err
	}
	if how.stored && d.cfg.OnProposed != nil {
		d.cfg.OnProposed(how.joined)
	}
	return r.newProposal(dem, how), nil
}

// errNoChange ends a change that is not needed, or not possible, any more.
var errNoChange = errors.New("settled")

// assignTicket finds the request's ticket or makes it.
func (d *Service) assignTicket(ctx context.Context, dem *Demand) (*ticketRecord, assignment, error) {
	for {
		id, similarity := d.index.findNearest(dem.owner(), promptExcerpt(dem.Unmet.Prompt))
		how := assignment{similarity: similarity, stored: true, joined: similarity >= JoinThreshold}
		if !how.joined {
			r, err := d.openTicket(ctx, dem, &how)
			return r, how, err
		}
		r, err := d.updateTicket(ctx, id, func(r *ticketRecord) error {
			if !r.isOpen() || r.hasRequest(dem.RequestID) {
				return errNoChange
			}
			r.addRequest(dem, similarity, d.cfg.Now())
			if isMilestone(r.Ticket.Count) {
				d.addNotice(r, eventGrown)
			}
			return nil
		})
		switch {
		case errors.Is(err, errNoChange) && !r.isOpen(), errors.Is(err, store.ErrNotFound):
			// Closed or gone: change has put that right in the index.
		case errors.Is(err, errNoChange):
			how.joined = r.Ticket.Count > 1
			return r, how, nil
		default:
			return r, how, err
		}
	}
}

// openTicket opens a ticket. Where there are too many, the request gets its proposal
// and no ticket.
func (d *Service) openTicket(ctx context.Context, dem *Demand, how *assignment) (*ticketRecord, error) {
	r := newRecord(d.cfg.NewID(), dem)
	r.addRequest(dem, 1, d.cfg.Now())
	if !d.hasCapacity(ctx) {
		d.cfg.Logger.WarnContext(ctx, "a request got no ticket: too many are open, close some", "open", d.maxOpen)
		how.notStored, how.stored = notStoredFull, false
		return r, nil
	}
	d.addNotice(r, eventOpened)
	revision, err := d.table.Create(ctx, r.Ticket.TicketID, r)
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		return nil, fmt.Errorf("open a ticket: %w", err)
	}
	// After ErrUnavailable it may be there. If it is not, the next request that
	// would join it finds that out.
	d.index.put(r, revision)
	if err != nil {
		return nil, fmt.Errorf("open a ticket: %w", err)
	}
	d.enqueueNotices(r)
	return r, nil
}

// hasCapacity reports whether one more ticket may be open. Tickets that the bucket has
// dropped for their age make room.
func (d *Service) hasCapacity(ctx context.Context) bool {
	for {
		id, full := d.index.checkFull(d.maxOpen)
		if !full {
			return true
		}
		if _, err := d.table.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
			return false
		}
		d.index.remove(id)
	}
}

// dryRun says what would be done.
func (d *Service) dryRun(ctx context.Context, dem *Demand) (*contract.Proposal, error) {
	id, similarity := d.index.findNearest(dem.owner(), promptExcerpt(dem.Unmet.Prompt))
	r, how := newRecord("", dem), assignment{similarity: similarity}
	if similarity >= JoinThreshold {
		stored, err := d.loadTicket(ctx, id)
		switch {
		case err == nil && stored.isOpen():
			r, how.joined = stored, true
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	r.addRequest(dem, similarity, d.cfg.Now())
	r.Ticket.TicketID = ""
	return r.newProposal(dem, how), nil
}

// updateTicket updates a ticket by compare-and-set, and its derived state: the index and
// the queue of notices. If fn returns an error, change writes nothing and returns it
// with the ticket as stored.
func (d *Service) updateTicket(ctx context.Context, id string, fn func(*ticketRecord) error) (*ticketRecord, error) {
	row, err := d.table.Update(ctx, id, fn)
	if errors.Is(err, store.ErrNotFound) {
		d.index.remove(id)
	}
	if row.Value != nil {
		d.index.put(row.Value, row.Revision)
	}
	if err == nil {
		d.enqueueNotices(row.Value)
	}
	return row.Value, err
}

// loadTicket reads a ticket, and removes a missing one from the index.
func (d *Service) loadTicket(ctx context.Context, id string) (*ticketRecord, error) {
	row, err := d.table.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		d.index.remove(id)
	}
	return row.Value, err
}

// addNotice notes what the webhook is to be told, if there is one.
func (d *Service) addNotice(r *ticketRecord, event string) {
	if d.sender != nil {
		r.addNotice(d.cfg.NewID(), event, d.cfg.Now())
	}
}

const keyPrefix = "ticket."
