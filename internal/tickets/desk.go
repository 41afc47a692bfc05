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

// mostOpen bounds the open tickets of all tenants together, and with them what a
// desk remembers.
const mostOpen = 10_000

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
	cfg   Config
	table *store.Table[record]
	index *index
	most  int           // open tickets
	turn  chan struct{} // held while a request finds or makes its ticket: two alike must not open two
	hook  *sender       // nil without a webhook
	queue *queue

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
	table := store.NewTable(cfg.Bucket, store.TableConfig[record]{Prefix: keyPrefix, Encode: encode, Decode: decode})
	d := &Service{cfg: cfg, table: table, index: newIndex(), most: mostOpen, turn: make(chan struct{}, 1), queue: newQueue(backoff)}
	if cfg.Webhook != nil {
		var err error
		if d.hook, err = newSender(cfg.Webhook, cfg.AllowPlainHTTP); err != nil {
			return nil, err
		}
	}
	err := table.Scan(ctx, func(row store.Row[record], err error) error {
		if err != nil { // one damaged ticket must not prevent the service of the others
			cfg.Logger.Error("ignoring a ticket that cannot be read", "ticket_id", row.Key, "err", err)
			return nil
		}
		d.index.put(row.Value, row.Revision)
		d.enqueue(row.Value)
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

// holder is whose a ticket is: a tenant's, or that of the callers without one whom
// the same issuer vouches for.
type holder struct{ tenant, issuer string }

func holderOf(c *contract.Caller) holder {
	switch {
	case c == nil:
		return holder{}
	case c.Tenant == "":
		return holder{issuer: c.Issuer}
	}
	return holder{tenant: c.Tenant}
}

func (d *Demand) holder() holder { return holderOf(d.Unmet.Caller) }

// Preview is what is proposed where no tickets are kept.
func Preview(d *Demand) *contract.Proposal {
	r := newRecord("", d)
	r.add(d, 1, time.Time{})
	return r.proposal(d, placed{unkept: unkeptNowhere})
}

// Propose puts the request on record, in an open ticket of its tenant that is
// similar or else in a new one, and says what agent is missing. A request without a
// word that says what it is about is not put on record: all of these would be alike.
// An error wraps one of package store, or the context's; then the request may or may
// not be counted.
func (d *Service) Propose(ctx context.Context, dem *Demand) (*contract.Proposal, error) {
	if !lexical.HasContentWord(excerpt(dem.Unmet.Prompt)) {
		r := newRecord("", dem)
		r.add(dem, 1, d.cfg.Now())
		return r.proposal(dem, placed{unkept: unkeptWordless}), nil
	}
	if dem.DryRun {
		return d.dryRun(ctx, dem)
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("put a request into a ticket: %w", ctx.Err())
	}
	d.registry.Store(&fallback.Unmet{Catalogue: dem.Unmet.Catalogue})
	r, how, err := d.place(ctx, dem)
	if err != nil {
		return nil, err
	}
	if how.stored && d.cfg.OnProposed != nil {
		d.cfg.OnProposed(how.joined)
	}
	return r.proposal(dem, how), nil
}

// errSettled ends a change that is not needed, or not possible, any more.
var errSettled = errors.New("settled")

// place finds the request's ticket or makes it.
func (d *Service) place(ctx context.Context, dem *Demand) (*record, placed, error) {
	for {
		id, similarity := d.index.nearest(dem.holder(), excerpt(dem.Unmet.Prompt))
		how := placed{similarity: similarity, stored: true, joined: similarity >= JoinThreshold}
		if !how.joined {
			r, err := d.begin(ctx, dem, &how)
			return r, how, err
		}
		r, err := d.change(ctx, id, func(r *record) error {
			if !r.open() || r.has(dem.RequestID) {
				return errSettled
			}
			r.add(dem, similarity, d.cfg.Now())
			if grown(r.Ticket.Count) {
				d.tell(r, eventGrown)
			}
			return nil
		})
		switch {
		case errors.Is(err, errSettled) && !r.open(), errors.Is(err, store.ErrNotFound):
			// Closed or gone: change has put that right in the index.
		case errors.Is(err, errSettled):
			how.joined = r.Ticket.Count > 1
			return r, how, nil
		default:
			return r, how, err
		}
	}
}

// begin opens a ticket. Where there are too many, the request gets its proposal
// and no ticket.
func (d *Service) begin(ctx context.Context, dem *Demand, how *placed) (*record, error) {
	r := newRecord(d.cfg.NewID(), dem)
	r.add(dem, 1, d.cfg.Now())
	if !d.room(ctx) {
		d.cfg.Logger.WarnContext(ctx, "a request got no ticket: too many are open, close some", "open", d.most)
		how.unkept, how.stored = unkeptFull, false
		return r, nil
	}
	d.tell(r, eventOpened)
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
	d.enqueue(r)
	return r, nil
}

// room reports whether one more ticket may be open. Tickets that the bucket has
// dropped for their age make room.
func (d *Service) room(ctx context.Context) bool {
	for {
		id, full := d.index.full(d.most)
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
	id, similarity := d.index.nearest(dem.holder(), excerpt(dem.Unmet.Prompt))
	r, how := newRecord("", dem), placed{similarity: similarity}
	if similarity >= JoinThreshold {
		stored, err := d.load(ctx, id)
		switch {
		case err == nil && stored.open():
			r, how.joined = stored, true
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	r.add(dem, similarity, d.cfg.Now())
	r.Ticket.TicketID = ""
	return r.proposal(dem, how), nil
}

// change updates a ticket by compare-and-set, and its derived state: the index and
// the queue of notices. If fn returns an error, change writes nothing and returns it
// with the ticket as stored.
func (d *Service) change(ctx context.Context, id string, fn func(*record) error) (*record, error) {
	row, err := d.table.Update(ctx, id, fn)
	if errors.Is(err, store.ErrNotFound) {
		d.index.remove(id)
	}
	if row.Value != nil {
		d.index.put(row.Value, row.Revision)
	}
	if err == nil {
		d.enqueue(row.Value)
	}
	return row.Value, err
}

// load reads a ticket, and removes a missing one from the index.
func (d *Service) load(ctx context.Context, id string) (*record, error) {
	row, err := d.table.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		d.index.remove(id)
	}
	return row.Value, err
}

// tell notes what the webhook is to be told, if there is one.
func (d *Service) tell(r *record, event string) {
	if d.hook != nil {
		r.note(d.cfg.NewID(), event, d.cfg.Now())
	}
}

const keyPrefix = "ticket."
