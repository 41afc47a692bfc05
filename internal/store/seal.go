package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/run"
)

// The values of a bucket with BucketConfig.Keys are encrypted, each key with a data key
// of its own. The engine keeps earlier revisions and deleted values in its files until it
// rewrites them; they become unreadable when the data key is erased, which is one small
// message in a second stream:
//
//	$KV.REQUESTS.req.42             value, encrypted with data key 7f…
//	keys.REQUESTS.data.req.42       data key 7f…, encrypted with epoch key 3c…
//	keys.REQUESTS.epoch             epoch key 3c…, encrypted with a master key
//
// An erased message is overwritten, for which the engine writes a whole block. Values that
// expire are therefore erased together, with their epoch key: see expireKeys.
//
// A new value is written at the same time as its data key. A value without one was never
// acknowledged, or was erased, and does not exist for readers.
type valueSealer struct {
	bucket *Bucket
	ring   *contentkey.Keyring
	log    *Log
	maxAge time.Duration

	// erasing serializes the erasure of data keys and their move to another epoch.
	erasing sync.Mutex
	// changing is held to change the epoch, and shared to write a data key, so that the
	// data keys of an epoch are stored between its key and the next one.
	changing sync.RWMutex

	current *keyEpoch // changed while changing is held
	checked time.Time // when current was read last, for a shared store; the same

	mu         sync.Mutex
	read       uint64 // the epoch of every data key up to this sequence was read
	epochs     map[contentkey.ID]*keyEpoch
	cachedKeys map[string]cachedKey // of recent values
	pending    map[contentkey.ID]*pendingKey
}

// cachedKey is the data key of a revision.
type cachedKey struct {
	revision uint64
	key      *contentkey.Key
}

// pendingKey is a data key that is being written together with its value.
type pendingKey struct {
	name string // the key in the bucket
	key  *contentkey.Key
	done chan struct{}
	err  error // set before done is closed
}

const (
	keyLogPrefix  = "KEYS_" // of streams of data keys
	maxCachedKeys = 4096    // about 1 KiB each
	minKeyEpoch   = time.Second
	maxKeyEpoch   = time.Hour
)

// errKeyErased is the error of a value whose data key does not exist.
var errKeyErased = fmt.Errorf("%w: its data key was erased", ErrNotFound)

// openSealer reads the epoch keys of the bucket, and begins an epoch if the newest one
// was not encrypted with the current master key.
func (s *Store) openSealer(ctx context.Context, b *Bucket, cfg *BucketConfig) (*valueSealer, error) {
	if cfg.KeyTTL {
		return nil, errors.New("values with a time to live of their own cannot be encrypted")
	}
	log, err := s.Log(ctx, LogConfig{Name: keyLogPrefix + b.name, Subjects: []string{"keys." + b.name + ".>"}})
	if err != nil {
		return nil, err
	}
	v := &valueSealer{
		bucket: b, ring: cfg.Keys, log: log, maxAge: cfg.MaxAge,
		epochs: map[contentkey.ID]*keyEpoch{}, cachedKeys: map[string]cachedKey{}, pending: map[contentkey.ID]*pendingKey{},
	}
	for {
		newest, err := v.readEpochs(ctx)
		if err != nil || cfg.Keys.SealedByCurrent(newest.Data) {
			return v, err
		}
		if err := v.beginEpoch(ctx); err != nil {
			return nil, err
		}
	}
}

// keySubject returns the subject of a data key; the part is "data", "moved" or "*".
func (v *valueSealer) keySubject(part, key string) string {
	return "keys." + v.bucket.name + "." + part + "." + key
}

// associatedData binds an encrypted value to its key.
func (v *valueSealer) associatedData(key string) []byte { return []byte(v.bucket.prefix + key) }

// isShared reports whether other processes use the bucket.
func (v *valueSealer) isShared() bool { return IsShared(v.bucket.store) }

// put writes an encrypted value. An update uses the data key of the revision that it
// replaces, so that erasing a data key once is enough.
func (v *valueSealer) put(ctx context.Context, key string, value []byte, after *uint64) (uint64, error) {
	if after == nil || *after == 0 {
		return v.putWithNewKey(ctx, key, value, after)
	}
	dataKey, err := v.dataKeyOf(ctx, key, *after)
	if err != nil {
		return 0, err
	}
	if dataKey == nil { // the revision is not encrypted
		return v.putWithNewKey(ctx, key, value, after)
	}
	revision, err := v.bucket.putStored(ctx, key, dataKey.Seal(value, v.associatedData(key)), after, 0)
	if err == nil {
		v.remember(key, revision, dataKey)
	}
	return revision, err
}

// dataKeyOf returns the data key of a revision, nil if that is not encrypted, or ErrConflict
// if it is not the latest.
func (v *valueSealer) dataKeyOf(ctx context.Context, key string, revision uint64) (*contentkey.Key, error) {
	if k := v.lookUp(key); k.revision == revision {
		return k.key, nil
	}
	switch entry, err := v.bucket.getEntry(ctx, key); { // calls remember
	case errors.Is(err, ErrNotFound), err == nil && entry.Revision != revision:
		return nil, ErrConflict
	case err != nil:
		return nil, err
	}
	if k := v.lookUp(key); k.revision == revision {
		return k.key, nil
	}
	return nil, nil
}

// putWithNewKey writes a value with a new data key. If the value replaces another one,
// its data key is written first, so that an interrupted write does not lose the other. In a
// shared store that is always so, because other processes do not know the pending keys.
func (v *valueSealer) putWithNewKey(ctx context.Context, key string, value []byte, after *uint64) (revision uint64, err error) {
	p := &pendingKey{name: key, key: contentkey.NewKey(), done: make(chan struct{})}
	v.mu.Lock()
	v.pending[p.key.ID()] = p
	v.mu.Unlock()
	defer func() {
		if p.err = err; err == nil {
			v.remember(key, revision, p.key)
		}
		v.mu.Lock()
		delete(v.pending, p.key.ID())
		v.mu.Unlock()
		close(p.done)
	}()
	sealed := p.key.Seal(value, v.associatedData(key))
	if v.isShared() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxSealedWrite)
		defer cancel()
	}
	if after == nil || *after != 0 || v.isShared() {
		if _, err := v.storeDataKey(ctx, v.keySubject("data", key), p.key); err != nil {
			return 0, err
		}
		return v.bucket.putStored(ctx, key, sealed, after, 0)
	}
	var errs [2]error // that of the value first
	run.ForEach(ctx, len(errs), len(errs), func(ctx context.Context, i int) {
		if i == 0 {
			revision, errs[i] = v.bucket.putStored(ctx, key, sealed, after, 0)
		} else {
			_, errs[i] = v.storeDataKey(ctx, v.keySubject("data", key), p.key)
		}
	})
	return revision, cmp.Or(errs[0], errs[1])
}

// storeDataKey writes a data key, encrypted with the current epoch key, and returns its
// sequence.
func (v *valueSealer) storeDataKey(ctx context.Context, subject string, dataKey *contentkey.Key) (uint64, error) {
	if err := v.checkEpoch(ctx); err != nil {
		return 0, err
	}
	v.changing.RLock()
	defer v.changing.RUnlock()
	sealed := v.current.key.Seal(dataKey.Marshal(), []byte(subject))
	return v.log.Append(ctx, subject, sealed, AppendOptions{})
}

// open decrypts a value that was read. A value of an earlier version is not encrypted.
func (v *valueSealer) open(ctx context.Context, key string, revision uint64, stored []byte) ([]byte, error) {
	id, sealed := contentkey.KeyOf(stored)
	if !sealed {
		return stored, nil
	}
	dataKey, err := v.findDataKey(ctx, key, id)
	if err != nil {
		return nil, err
	}
	value, err := dataKey.Open(stored, v.associatedData(key))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	v.remember(key, revision, dataKey)
	return value, nil
}

// findDataKey returns a data key of the key, or errKeyErased.
func (v *valueSealer) findDataKey(ctx context.Context, key string, id contentkey.ID) (*contentkey.Key, error) {
	if k := v.lookUp(key); k.key != nil && k.key.ID() == id {
		return k.key, nil
	}
	v.mu.Lock()
	p := v.pending[id]
	v.mu.Unlock()
	if p != nil {
		select {
		case <-p.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
		}
		if p.err != nil {
			return nil, errKeyErased
		}
		return p.key, nil
	}
	// Twice, because the first read may return a message whose epoch has just ended.
	for range 2 {
		stored, err := v.listDataKeys(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, k := range stored {
			if k.key != nil && k.key.ID() == id {
				return k.key, nil
			}
		}
	}
	return nil, errKeyErased
}

// storedKey is a message with a data key.
type storedKey struct {
	seq uint64
	key *contentkey.Key // nil = its epoch key was erased
}

// listDataKeys returns the stored data keys of a key.
func (v *valueSealer) listDataKeys(ctx context.Context, key string) ([]storedKey, error) {
	var keys []storedKey
	err := v.log.Read(ctx, ReadFrom{Subject: v.keySubject("*", key)}, func(m Message) error {
		dataKey, err := v.openDataKey(ctx, m)
		keys = append(keys, storedKey{m.Seq, dataKey})
		return err
	})
	return keys, err
}

// openDataKey decrypts a message with a data key. It returns nil if its epoch key was erased.
func (v *valueSealer) openDataKey(ctx context.Context, m Message) (*contentkey.Key, error) {
	id, _ := contentkey.KeyOf(m.Data)
	epoch, err := v.findEpoch(ctx, id, m.Seq)
	if epoch == nil || err != nil {
		return nil, err
	}
	data, err := epoch.key.Open(m.Data, []byte(m.Subject))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return contentkey.ParseKey(data)
}

func (v *valueSealer) lookUp(key string) cachedKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cachedKeys[key]
}

func (v *valueSealer) remember(key string, revision uint64, dataKey *contentkey.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	have, ok := v.cachedKeys[key]
	if ok && have.revision > revision {
		return
	}
	if !ok && len(v.cachedKeys) >= maxCachedKeys {
		for other := range v.cachedKeys { // any
			delete(v.cachedKeys, other)
			break
		}
	}
	v.cachedKeys[key] = cachedKey{revision, dataKey}
}

// replaceUnreadable writes a key whose value is unreadable, because its process was
// killed before it had written the data key, or ErrConflict if the value is readable.
func (v *valueSealer) replaceUnreadable(ctx context.Context, key string, value []byte) (uint64, error) {
	m, err := v.bucket.readLatest(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return v.putWithNewKey(ctx, key, value, new(uint64(0)))
	}
	if err == nil {
		if _, err = v.bucket.toEntry(ctx, m); err == nil {
			err = ErrConflict
		}
	}
	if !errors.Is(err, errKeyErased) {
		return 0, err
	}
	return v.putWithNewKey(ctx, key, value, &m.Seq)
}
