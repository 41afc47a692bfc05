package sharedkeys

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Config configures a Directory. All fields but Logger and Now are required.
type Config struct {
	Bucket      *store.Bucket // see BucketConfig
	Keys        *contentkey.Keyring
	SigningKeys *keyring.Ring // of this replica; receives those of the others
	Replica     string        // name of the replica, stable over restarts: letters, digits, - and _
	Logger      *slog.Logger  // nil = silent
	Now         func() time.Time
}

// Directory publishes the keys of one replica, and receives those of the others. It is
// safe for concurrent use.
type Directory struct {
	cfg      Config
	envelope *envelope
	rows     *store.Table[[]byte] // of replicas; encrypted
	created  bool                 // this replica chose the keyring

	publishing sync.Mutex // one write of the own row at a time

	mu        sync.Mutex
	peers     peerSet
	secrets   secretsRecord // the latest known
	applied   appliedKeys
	revisions map[string]uint64 // of rows, the latest known
	restore   bool              // the row of the secrets must be written again
	published []byte            // content of the own row without its time; nil = publish again
	issued    time.Time         // of the own row
	reached   time.Time         // when the store last accepted the own row
}

// appliedKeys are the keys that the ring of signing keys has.
type appliedKeys struct {
	peers   []keyring.PublicKey
	secrets [][]byte
}

// Open agrees with the other replicas on the keyring, publishes the keys of this one and
// gives those of the others to the ring of signing keys.
func Open(ctx context.Context, cfg Config) (*Directory, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Directory{cfg: cfg, peers: peerSet{}, revisions: map[string]uint64{}}
	d.rows = store.NewTable(cfg.Bucket, store.TableConfig[[]byte]{
		Prefix: replicaPrefix,
		Encode: func(_ string, sealed *[]byte) ([]byte, error) { return *sealed, nil },
		Decode: func(_ string, data []byte) (*[]byte, error) { return &data, nil },
		TTL:    func(*[]byte) time.Duration { return keyLife },
	})
	var err error
	if d.envelope, d.created, err = agreeOnKeyring(ctx, cfg.Bucket, cfg.Keys, rand.Text()); err != nil {
		return nil, err
	}
	err = cfg.Bucket.Scan(ctx, "", func(e store.Entry) error {
		d.receive(ctx, &e)
		return nil
	})
	if err == nil {
		err = d.peers.checkContentKeys(cfg.Keys.IDs(), cfg.Now())
	}
	if err == nil {
		err = d.publish(ctx, false)
	}
	if err == nil {
		err = d.updateSecrets(ctx, true)
	}
	if err == nil {
		err = d.apply()
	}
	if err != nil {
		return nil, fmt.Errorf("share keys with the other replicas: %w", err)
	}
	return d, nil
}

// ChoseKeyring reports whether this replica chose the keyring of the store.
func (d *Directory) ChoseKeyring() bool { return d.created }

// Close publishes that this replica has stopped. Its keys stay accepted.
func (d *Directory) Close(ctx context.Context) {
	if err := d.publish(ctx, true); err != nil {
		d.cfg.Logger.WarnContext(ctx, "cannot publish that this replica has stopped", "error", err)
	}
}

// checkInterval is how often Run looks for changes of the own keys.
const checkInterval = time.Second

// Run publishes the own keys after each change, and regularly, and rotates the secrets,
// until ctx ends.
func (d *Directory) Run(ctx context.Context) error {
	var last string
	for range run.Ticks(ctx, checkInterval) {
		err := d.maintain(ctx)
		if ctx.Err() != nil {
			return nil
		}
		text := fmt.Sprint(err)
		if err != nil && text != last {
			d.cfg.Logger.ErrorContext(ctx, "cannot share keys with the other replicas", "error", err)
		}
		last = text
	}
	return nil
}

// maintain brings the store and the ring of signing keys up to date.
func (d *Directory) maintain(ctx context.Context) error {
	var err error
	if d.mustPublish() {
		err = d.publish(ctx, false)
	}
	return errors.Join(err, d.updateSecrets(ctx, false), d.apply())
}

// Follow receives the keys of the others until ctx ends.
func (d *Directory) Follow(ctx context.Context) error {
	d.watch(ctx)
	for range run.Ticks(ctx, checkInterval) { // again, if it failed
		d.watch(ctx)
	}
	return nil
}

func (d *Directory) watch(ctx context.Context) {
	err := d.cfg.Bucket.Watch(ctx, "", func(c store.Change) error {
		if c.Deleted {
			d.restoreDeleted(c.Key)
			return nil
		}
		d.receive(ctx, &c.Entry)
		if err := d.apply(); err != nil {
			d.cfg.Logger.ErrorContext(ctx, "cannot use the keys of the other replicas", "error", err)
		}
		return nil
	})
	if ctx.Err() == nil {
		d.cfg.Logger.ErrorContext(ctx, "cannot follow the keys of the other replicas", "error", err)
	}
}

// receive takes over a row, unless a later revision is known. Rows that no replica of this
// store can have written are ignored, and logged.
func (d *Directory) receive(ctx context.Context, e *store.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Revision < d.revisions[e.Key] {
		return
	}
	d.revisions[e.Key] = e.Revision
	var err error
	switch name, ofReplica := strings.CutPrefix(e.Key, replicaPrefix); {
	case ofReplica && name == d.cfg.Replica:
		err = d.receiveOwn(e)
	case ofReplica:
		a := &announcement{}
		if err = d.envelope.open(e.Key, e.Value, a); err == nil {
			err = d.peers.add(name, a, d.cfg.Now())
		}
	case e.Key == secretsKey:
		err = d.receiveSecrets(e)
	}
	if err != nil {
		d.cfg.Logger.WarnContext(ctx, "ignoring a shared key", "row", e.Key, "error", err)
	}
}

// receiveOwn checks the own row, which no other process writes. The caller holds mu.
func (d *Directory) receiveOwn(e *store.Entry) error {
	a := &announcement{}
	err := d.envelope.open(e.Key, e.Value, a)
	switch {
	case d.issued.IsZero(): // the row of an earlier process of this replica
		if err == nil {
			d.issued = a.Issued
		}
		return nil
	case err == nil && a.Issued.Before(d.issued):
		err = errReplayed
	}
	if err != nil {
		d.published = nil
	}
	return err
}

// receiveSecrets takes over the secrets. The caller holds mu.
func (d *Directory) receiveSecrets(e *store.Entry) error {
	var record secretsRecord
	err := d.envelope.open(e.Key, e.Value, &record)
	if err == nil && record.isOlderThan(&d.secrets) {
		err = errReplayed
	}
	if err != nil {
		d.restore = true
		return err
	}
	d.secrets = record
	return nil
}

// restoreDeleted lets Run write a row again that no replica deletes.
func (d *Directory) restoreDeleted(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch key {
	case replicaPrefix + d.cfg.Replica:
		d.published = nil
	case secretsKey:
		d.restore = true
	}
}

// newAnnouncement returns the content of the own row, without its time, and its encoding.
func (d *Directory) newAnnouncement(stopped bool) (announcement, []byte, error) {
	a := announcement{Stopped: stopped, ContentKeys: d.cfg.Keys.IDs(), Revoked: d.lastRevocation(), Keys: d.cfg.SigningKeys.PublicKeys()}
	data, err := strictjson.Marshal(a)
	return a, data, err
}

// lastRevocation returns when this replica last revoked a key; zero = never.
func (d *Directory) lastRevocation() (last time.Time) {
	for _, k := range d.cfg.SigningKeys.Keys(d.cfg.Now()) {
		if k.Revoked.After(last) {
			last = k.Revoked
		}
	}
	return last
}

func (d *Directory) mustPublish() bool {
	_, data, err := d.newAnnouncement(false)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Now()
	return err != nil || !bytes.Equal(data, d.published) || !now.Before(d.issued.Add(renewInterval)) || isFuture(d.issued, now)
}

// publish writes the own row.
func (d *Directory) publish(ctx context.Context, stopped bool) error {
	d.publishing.Lock()
	defer d.publishing.Unlock()
	a, data, err := d.newAnnouncement(stopped)
	if err != nil {
		return err
	}
	now := d.cfg.Now()
	d.mu.Lock()
	a.Issued = now.UTC()
	if !a.Issued.After(d.issued) && !isFuture(d.issued, now) { // the clock was set back a little
		a.Issued = d.issued.Add(time.Nanosecond)
	}
	d.issued = a.Issued // before the row is written, because Follow may receive it earlier
	d.mu.Unlock()
	key := replicaPrefix + d.cfg.Replica
	sealed, err := d.envelope.seal(key, a)
	var row store.Row[[]byte]
	if err == nil {
		row, err = d.rows.Update(ctx, d.cfg.Replica, func(row *[]byte) error { *row = sealed; return nil })
	}
	if errors.Is(err, store.ErrNotFound) {
		row.Revision, err = d.rows.Create(ctx, d.cfg.Replica, &sealed)
	}
	if err != nil {
		return fmt.Errorf("publish the keys of this replica: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.published, d.reached = data, now
	d.revisions[key] = max(d.revisions[key], row.Revision)
	return nil
}

// updateSecrets rotates the secrets of callback tokens if it is time. At the start it also
// encrypts the row with the first key of the ring.
func (d *Directory) updateSecrets(ctx context.Context, atStart bool) error {
	revoked := d.lastRevocation()
	d.mu.Lock()
	if last := d.peers.lastRevocation(); last.After(revoked) {
		revoked = last
	}
	known := d.secrets
	required := known.update(d.cfg.Now(), revoked) || d.restore || atStart
	known = d.secrets
	d.mu.Unlock()
	if !required {
		return nil
	}
	var record secretsRecord
	revision, err := store.CompareAndSet(ctx, d.cfg.Bucket, secretsKey, func(e store.Entry) ([]byte, error) {
		record = secretsRecord{}
		if e.Revision != 0 {
			if err := d.envelope.open(secretsKey, e.Value, &record); contentkey.IsUnknownKey(err) && atStart {
				return nil, err
			} else if err != nil {
				record = secretsRecord{} // no replica has written it
			}
		}
		stale := e.Revision == 0 || record.isOlderThan(&known)
		if stale {
			record = known
		}
		if !record.update(d.cfg.Now(), revoked) && !stale && d.cfg.Keys.SealedByCurrent(e.Value) {
			return nil, store.ErrStop
		}
		return d.envelope.seal(secretsKey, record)
	})
	if err != nil {
		return fmt.Errorf("rotate the secrets of callback tokens: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if revision >= d.revisions[secretsKey] {
		d.secrets, d.restore, d.revisions[secretsKey] = record, false, revision
	}
	return nil
}

// apply gives the keys and the secrets that are accepted now to the ring of signing keys.
func (d *Directory) apply() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	// Measured from the last contact with the store: while it does not answer, a replica
	// cannot renew its keys.
	peers := d.peers.keys(d.reached)
	if !slices.EqualFunc(peers, d.applied.peers, equalKeys) {
		if err := d.cfg.SigningKeys.SetPeerKeys(peers); err != nil {
			return err
		}
		d.applied.peers = peers
	}
	secrets := d.secrets.inUse(d.cfg.Now())
	if len(secrets) > 0 && !slices.EqualFunc(secrets, d.applied.secrets, bytes.Equal) {
		if err := d.cfg.SigningKeys.SetTaskSecrets(secrets); err != nil {
			return err
		}
		d.applied.secrets = secrets
	}
	return nil
}

func equalKeys(a, b keyring.PublicKey) bool {
	return bytes.Equal(a.Signing, b.Signing) && bytes.Equal(a.ES256, b.ES256) && bytes.Equal(a.Caller, b.Caller)
}
