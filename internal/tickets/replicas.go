package tickets

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// Replicas describes the other processes with a Service of the same bucket.
type Replicas struct {
	Owner    string                  // id of this process
	IsLive   func(owner string) bool // reports whether a process may still run
	Messages Messages
}

// Messages are messages between the processes, which may be lost. *store.Store
// implements it.
type Messages interface {
	Broadcast(topic string, data []byte) error
	Subscribe(ctx context.Context, topic string, fn func(data []byte)) error
}

// coordinator coordinates the services of one bucket.
type coordinator interface {
	// reserveOpening is called before a ticket is created. It returns false if the other
	// services have opened tickets of the owner that were not in the index: then a similar
	// one must be searched again.
	reserveOpening(ctx context.Context, of ticketOwner, id string) (bool, error)
	// announceChange is called after a ticket was changed or deleted.
	announceChange(id string)
	// owner is the id of this process, which is stored in its notices.
	owner() string
	// mayDeliver reports whether this process delivers the notices of an owner.
	mayDeliver(owner string) bool
	// follow updates the index with the changes of the others until ctx ends.
	follow(ctx context.Context) error
}

// onlyService is the coordinator of an embedded store: no other process changes the bucket.
type onlyService struct{}

func (onlyService) reserveOpening(context.Context, ticketOwner, string) (bool, error) {
	return true, nil
}
func (onlyService) announceChange(string)  {}
func (onlyService) owner() string          { return "" }
func (onlyService) mayDeliver(string) bool { return true }
func (onlyService) follow(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

const (
	messageTopic  = "tickets"
	openingPrefix = "opening."
	// maxOpenings is how many ids a row has. A service that has missed more reads the
	// bucket again.
	maxOpenings = 64
	// openingTime is how long a ticket may take from its reservation until it is stored.
	openingTime = 10 * time.Second
	openingPoll = 20 * time.Millisecond
	// maxOpeningAge is the age of a reservation from which a ticket without a record is not
	// awaited: its process was killed.
	maxOpeningAge = time.Minute
	// resubscribePause is the pause before messages are subscribed to again.
	resubscribePause = time.Second
	// rereadInterval is how often the bucket is read again, because messages may be lost.
	rereadInterval = 5 * time.Minute
)

// openings is the row of the tickets that were opened for one owner. A service writes it
// by compare-and-set before it creates a ticket, so that of two services that receive
// similar requests at the same time one sees the ticket of the other.
type openings struct {
	Count  uint64    `json:"count"` // of all
	Recent []opening `json:"recent"`
}

type opening struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// sharedService is the coordinator of a service whose bucket other processes change.
type sharedService struct {
	Replicas

	service  *Service
	openings *store.Table[openings]

	mu      sync.Mutex
	seen    map[string]uint64 // count of the row whose tickets are in the index, by key
	changed map[string]bool   // tickets to read again
	wake    chan struct{}     // holds a token if changed is not empty
}

func newSharedService(s *Service, r *Replicas) *sharedService {
	return &sharedService{
		Replicas: *r, service: s,
		openings: store.NewTable(s.cfg.Bucket, store.TableConfig[openings]{Prefix: openingPrefix}),
		seen:     map[string]uint64{}, changed: map[string]bool{}, wake: make(chan struct{}, 1),
	}
}

// load is called before the tickets are read: those of the rows are in the index then,
// unless they are just being created.
func (c *sharedService) load(ctx context.Context) error {
	return c.openings.Scan(ctx, func(row store.Row[openings], err error) error {
		if err != nil {
			return nil //nolint:nilerr // reserveOpening reads it again
		}
		seen := row.Value.Count
		for _, o := range row.Value.Recent {
			if c.service.cfg.Now().Sub(o.At) < maxOpeningAge {
				seen--
			}
		}
		c.setSeen(row.Key, seen)
		return nil
	})
}

func (c *sharedService) seenOf(key string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[key]
}

func (c *sharedService) setSeen(key string, count uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[key] = count
}

// reserveOpening implements coordinator.
func (c *sharedService) reserveOpening(ctx context.Context, of ticketOwner, id string) (bool, error) {
	key := store.HashKey(of.tenant, of.issuer)
	row, err := c.openings.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		row, err = store.Row[openings]{Value: &openings{}}, nil
	}
	if err != nil {
		return false, fmt.Errorf("reserve a ticket: %w", err)
	}
	if missed := row.Value.Count - min(row.Value.Count, c.seenOf(key)); missed > 0 {
		if err := c.loadOpenings(ctx, row.Value, missed); err != nil {
			return false, err
		}
		c.setSeen(key, row.Value.Count)
		return false, nil
	}
	next := openings{Count: row.Value.Count + 1, Recent: append(row.Value.Recent, opening{id, c.service.cfg.Now().UTC()})}
	next.Recent = next.Recent[max(0, len(next.Recent)-maxOpenings):]
	if row.Revision == 0 {
		_, err = c.openings.Create(ctx, key, &next)
	} else {
		err = c.replace(ctx, key, row.Value.Count, &next)
	}
	switch {
	case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrConflict):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reserve a ticket: %w", err)
	}
	c.setSeen(key, next.Count)
	return true, nil
}

// replace writes a row, or returns ErrConflict if another service has written it since.
func (c *sharedService) replace(ctx context.Context, key string, count uint64, next *openings) error {
	_, err := c.openings.Update(ctx, key, func(stored *openings) error {
		if stored.Count != count {
			return store.ErrConflict
		}
		*stored = *next
		return nil
	})
	if errors.Is(err, store.ErrNotFound) { // it has expired since
		return store.ErrConflict
	}
	return err
}

// loadOpenings adds the tickets that the others have opened last to the index.
func (c *sharedService) loadOpenings(ctx context.Context, row *openings, missed uint64) error {
	if missed > uint64(len(row.Recent)) {
		return c.service.readTickets(ctx)
	}
	for _, o := range row.Recent[len(row.Recent)-int(missed):] {
		if err := c.waitForTicket(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// waitForTicket adds a ticket to the index. If it is just being created, it waits until
// that is done; its process may have been killed.
func (c *sharedService) waitForTicket(ctx context.Context, o opening) error {
	limit := time.NewTimer(openingTime)
	defer limit.Stop()
	mayAppear := c.service.cfg.Now().Sub(o.At) < maxOpeningAge
	for {
		err := c.service.refreshTicket(ctx, o.ID)
		if err == nil || errors.Is(err, store.ErrNotFound) && !mayAppear {
			return nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("read ticket %s: %w", o.ID, err)
		}
		select {
		case <-limit.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for ticket %s: %w", o.ID, context.Cause(ctx))
		case <-time.After(openingPoll):
		}
	}
}

// announceChange implements coordinator. A message that is lost is replaced by the next
// regular reading of the bucket.
func (c *sharedService) announceChange(id string) {
	if err := c.Messages.Broadcast(messageTopic, []byte(id)); err != nil {
		c.service.cfg.Logger.Debug("cannot announce a change of a ticket", "ticket_id", id, "error", err)
	}
}

func (c *sharedService) owner() string { return c.Owner }

// mayDeliver implements coordinator. A notice without an owner was stored by an embedded
// store.
func (c *sharedService) mayDeliver(owner string) bool {
	return owner == c.Owner || !c.IsLive(owner)
}

// follow implements coordinator.
func (c *sharedService) follow(ctx context.Context) error {
	g := run.New(ctx)
	g.Go("receive changes of tickets", func(ctx context.Context) error {
		for {
			err := c.Messages.Subscribe(ctx, messageTopic, c.noteChange)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // stopped
			}
			c.service.cfg.Logger.WarnContext(ctx, "cannot receive changes of tickets", "error", err)
			if !resilience.Sleep(ctx, resubscribePause) {
				return nil
			}
		}
	})
	g.Go("read changed tickets", c.readChanged)
	return g.Wait()
}

func (c *sharedService) noteChange(id []byte) {
	if !store.ValidID(string(id)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed[string(id)] = true
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// readChanged reads the changed tickets, and all of them now and then.
func (c *sharedService) readChanged(ctx context.Context) error {
	all := time.NewTicker(rereadInterval)
	defer all.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-all.C:
			err = c.service.cfg.Quota.Recount(func() error { return c.service.readTickets(ctx) })
		case <-c.wake:
			c.mu.Lock()
			ids := c.changed
			c.changed = map[string]bool{}
			c.mu.Unlock()
			for id := range ids {
				if e := c.service.refreshTicket(ctx, id); !errors.Is(e, store.ErrNotFound) {
					err = errors.Join(err, e)
				}
			}
		}
		if err != nil && ctx.Err() == nil {
			c.service.cfg.Logger.WarnContext(ctx, "cannot read tickets that another replica has changed", "error", err)
		}
	}
}
