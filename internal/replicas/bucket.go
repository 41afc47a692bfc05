package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// ErrNameInUse is wrapped by the error for a name that a live process has. It is a
// store.ErrLocked as well.
var ErrNameInUse = fmt.Errorf("%w: the name of this replica is used by another process", store.ErrLocked)

const (
	bucketName = "REPLICAS"
	topic      = "replicas" // of messages after which all read the rows at once
	// keepRows is how long the row of a replica stays after its last beat.
	keepRows = time.Hour
	// closeTimeout bounds the last write of a row.
	closeTimeout = 3 * time.Second
	// joinReads is how often a row is read before its process counts as ended.
	joinReads = int(deadAfter/beatInterval) + 1
)

// Config configures the membership of a store at a URL. Store, Name and Owner are
// required.
type Config struct {
	Store *store.Store
	Name  string // of this replica; stable over restarts, and unique
	Owner string // id of this process
	// Version is that of the program.
	Version string
	// PublicKeys returns the public keys of this replica as a JWK set. It is called
	// before each beat, so that the others have a new key within two seconds. Nil =
	// none.
	PublicKeys func() []byte
	Logger     *slog.Logger // nil = silent
}

// bucketLink is the link of a store at a URL. Only its own goroutine uses it after
// Open.
type bucketLink struct {
	cfg     Config
	m       *Membership
	rows    *store.Table[row]
	own     row
	tracker *tracker
	started time.Time // zero of the tracker's time
	failing bool      // the last beat failed

	group *run.Group
	wake  chan struct{} // holds a token if the rows must be read at once
	ended sync.Once
}

// Open makes this process a member, and begins its beats. When it returns, IsLive knows
// the other replicas: those whose process ended without Close count as live for another
// three seconds. Close must be called.
//
// If another process may have the name, Open waits for three seconds whether it does,
// and returns ErrNameInUse if so.
func Open(ctx context.Context, cfg Config) (*Membership, error) {
	if cfg.PublicKeys == nil {
		cfg.PublicKeys = func() []byte { return nil }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := cfg.Store.Bucket(ctx, store.BucketConfig{Name: bucketName, MaxAge: keepRows})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	l := &bucketLink{
		cfg: cfg, rows: store.NewTable(b, store.TableConfig[row]{Decode: decodeRow}), tracker: newTracker(cfg.Name), started: now,
		own: row{Owner: cfg.Owner, Version: cfg.Version, Started: now.UTC()}, wake: make(chan struct{}, 1),
	}
	l.m = &Membership{link: l, self: Member{Name: cfg.Name, Owner: cfg.Owner, Version: cfg.Version, Started: now, Live: true}}
	if err := l.join(ctx); err != nil {
		return nil, fmt.Errorf("join the replicas: %w", err)
	}
	if err := l.beat(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("join the replicas: %w", err), l.leave(ctx))
	}
	l.group = run.New(context.WithoutCancel(ctx))
	l.group.Go("receive messages of replicas", func(ctx context.Context) error {
		_ = cfg.Store.Subscribe(ctx, topic, func([]byte) { l.readNow() })
		return nil
	})
	l.group.Go("beat", l.run)
	_ = cfg.Store.Broadcast(topic, nil) // otherwise they read the row at their next beat
	return l.m, nil
}

// decodeRow ignores what it does not know, because a newer version may have written it.
func decodeRow(_ string, data []byte) (*row, error) {
	r := new(row)
	return r, strictjson.UnmarshalAllowUnknown(data, r)
}

// join writes the row of this replica, unless a live process has one.
func (l *bucketLink) join(ctx context.Context) error {
	l.own.Keys = l.cfg.PublicKeys()
	var first row
	for reads := 0; ; reads++ {
		found, err := l.rows.Get(ctx, l.cfg.Name)
		switch {
		case errors.Is(err, store.ErrNotFound):
			if _, err = l.rows.Create(ctx, l.cfg.Name, &l.own); !errors.Is(err, store.ErrExists) {
				return err
			}
			continue
		case err != nil:
			return err
		case reads == 0:
			first = *found.Value
		case found.Value.Owner != first.Owner || found.Value.Beat != first.Beat:
			return l.nameError(found.Value)
		}
		if first.Left || reads == joinReads {
			return l.replace(ctx, &first)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(beatInterval):
		}
	}
}

// replace takes over the row of a process that has ended.
func (l *bucketLink) replace(ctx context.Context, old *row) error {
	_, err := l.rows.Update(ctx, l.cfg.Name, func(stored *row) error {
		if stored.Owner != old.Owner || stored.Beat != old.Beat || stored.Left != old.Left {
			return l.nameError(stored)
		}
		*stored = l.own
		return nil
	})
	return err
}

func (l *bucketLink) nameError(other *row) error {
	return fmt.Errorf("%w: %s, process %s, started %s: use the data directory of this replica once, or delete the file replica in a copy of it",
		ErrNameInUse, l.cfg.Name, other.Owner, other.Started.Format(time.RFC3339))
}

// run beats until ctx ends.
func (l *bucketLink) run(ctx context.Context) error {
	timer := time.NewTimer(beatInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-l.wake:
		}
		limit, cancel := context.WithTimeout(ctx, maxGap)
		err := l.beat(limit)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrNameInUse):
			l.cfg.Store.LoseOwnership(err)
			return nil
		case err != nil && !l.failing:
			l.cfg.Logger.WarnContext(ctx, "the other replicas cannot be reached through the store", "error", err)
		case err == nil && l.failing:
			l.cfg.Logger.InfoContext(ctx, "the other replicas can be reached again")
		}
		l.failing = err != nil
		timer.Reset(beatInterval)
	}
}

// beat writes the row of this replica, and reads all rows.
func (l *bucketLink) beat(ctx context.Context) error {
	if err := l.writeRow(ctx); err != nil {
		return err
	}
	begin := time.Since(l.started)
	rows := map[string]row{}
	err := l.rows.Scan(ctx, func(r store.Row[row], err error) error {
		if err == nil {
			rows[r.Key] = *r.Value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if own := rows[l.cfg.Name]; own.Owner != l.own.Owner || own.Beat != l.own.Beat {
		return nil // read from a server that has not received the beat yet
	}
	dead := l.tracker.observe(begin, time.Since(l.started), rows)
	l.m.publish(l.tracker, &l.own)
	for _, owner := range dead {
		l.cfg.Logger.InfoContext(ctx, "a replica is dead", "owner", owner)
	}
	if len(dead) > 0 {
		l.m.reportDead()
	}
	return nil
}

// writeRow writes the next beat. If the row has expired, it is created again.
func (l *bucketLink) writeRow(ctx context.Context) error {
	l.own.Beat++
	l.own.Keys = l.cfg.PublicKeys()
	_, err := l.rows.Update(ctx, l.cfg.Name, func(stored *row) error {
		if stored.Owner != l.own.Owner {
			return l.nameError(stored)
		}
		*stored = l.own
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		_, err = l.rows.Create(ctx, l.cfg.Name, &l.own)
	}
	return err
}

func (l *bucketLink) readNow() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// close implements link.
func (l *bucketLink) close(ctx context.Context) (err error) {
	l.ended.Do(func() {
		l.group.Stop(nil)
		if err = l.group.Wait(); err == nil {
			err = l.leave(ctx)
		}
	})
	return err
}

// leave marks the row, so that the others take over at once.
func (l *bucketLink) leave(ctx context.Context) error {
	if l.cfg.Store.OwnershipError() != nil {
		return nil // another process has the row
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	l.own.Left = true
	if err := l.writeRow(ctx); err != nil {
		return fmt.Errorf("leave the replicas: %w", err)
	}
	_ = l.cfg.Store.Broadcast(topic, nil) // otherwise they read the row at their next beat
	return nil
}
