package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/contentkey"
)

// keyEpoch is a key that encrypts data keys.
type keyEpoch struct {
	key   *contentkey.Key
	seq   uint64 // of its message
	since time.Time
}

// readEpochs reads the stored epochs, of which the newest becomes the current one, and
// returns its message. Other processes may have begun some.
func (v *valueSealer) readEpochs(ctx context.Context) (newest Message, err error) {
	v.changing.Lock()
	defer v.changing.Unlock()
	return v.readEpochsLocked(ctx)
}

// readEpochsLocked is readEpochs for a caller that holds changing.
func (v *valueSealer) readEpochsLocked(ctx context.Context) (newest Message, err error) {
	began := time.Now()
	err = v.log.Read(ctx, ReadFrom{Subject: v.epochSubject()}, func(m Message) error {
		data, err := v.ring.Open(m.Data, []byte(m.Subject))
		if err != nil {
			return err
		}
		key, err := contentkey.ParseKey(data)
		if err != nil {
			return err
		}
		newest = m
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.epochs[key.ID()] == nil {
			v.epochs[key.ID()] = &keyEpoch{key: key, seq: m.Seq, since: m.At}
		}
		if v.current == nil || m.Seq > v.current.seq {
			v.current = v.epochs[key.ID()]
		}
		return nil
	})
	if err == nil {
		v.checked = began
	}
	return newest, err
}

func (v *valueSealer) epochSubject() string { return "keys." + v.bucket.name + ".epoch" }

// beginEpoch makes a new epoch key the current one, or that of another process which has
// begun an epoch at the same time.
func (v *valueSealer) beginEpoch(ctx context.Context) error {
	v.changing.Lock()
	defer v.changing.Unlock()
	var last uint64
	if v.current != nil {
		last = v.current.seq
	}
	key := contentkey.NewKey()
	sealed := v.ring.Seal(key.Marshal(), []byte(v.epochSubject()))
	seq, err := v.log.Append(ctx, v.epochSubject(), sealed, AppendOptions{ExpectLast: &last})
	if errors.Is(err, ErrConflict) {
		_, err = v.readEpochsLocked(ctx)
		return err
	}
	if err != nil {
		return err
	}
	v.current = &keyEpoch{key: key, seq: seq, since: v.bucket.store.cfg.Now()}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.epochs[key.ID()] = v.current
	return nil
}

// Bounds of a shared store, in which a process may use an epoch for a while after another
// one has begun the next.
const (
	epochCheckInterval = 30 * time.Second // between two looks for a newer epoch
	maxSealedWrite     = 30 * time.Second // of a value with its data key
	// epochGrace is how long an epoch is kept after the next one has begun. It has 30 s
	// for the clocks of the servers.
	epochGrace = epochCheckInterval + maxSealedWrite + 30*time.Second
)

// checkEpoch reads the epochs again if another process may have begun one.
func (v *valueSealer) checkEpoch(ctx context.Context) error {
	if !v.isShared() {
		return nil
	}
	v.changing.RLock()
	fresh := time.Since(v.checked) < epochCheckInterval
	v.changing.RUnlock()
	if fresh {
		return nil
	}
	_, err := v.readEpochs(ctx)
	return err
}

// findEpoch returns the epoch of a data key with this sequence, nil if it was erased. An
// epoch is stored before its data keys, so one that another process has begun is found
// by reading the epochs once.
func (v *valueSealer) findEpoch(ctx context.Context, id contentkey.ID, seq uint64) (*keyEpoch, error) {
	for tried := !v.isShared(); ; tried = true {
		v.mu.Lock()
		epoch, known := v.epochs[id], seq <= v.read
		v.mu.Unlock()
		if epoch != nil || known || tried {
			return epoch, nil
		}
		if _, err := v.readEpochs(ctx); err != nil {
			return nil, err
		}
		v.mu.Lock()
		v.read = max(v.read, seq)
		v.mu.Unlock()
	}
}

// epochLength is how long one epoch key is used.
func (v *valueSealer) epochLength() time.Duration {
	return min(max(v.maxAge/2, minKeyEpoch), maxKeyEpoch)
}

// eraseExpired erases the data keys of expired values until ctx ends.
func (v *valueSealer) eraseExpired(ctx context.Context) error {
	tick := time.NewTicker(v.epochLength())
	defer tick.Stop()
	for {
		if err := v.expireKeys(ctx); err != nil && ctx.Err() == nil {
			v.bucket.store.cfg.Logger.ErrorContext(ctx, "store: cannot erase the data keys of expired values", "bucket", v.bucket.name, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// expireKeys erases the data keys of expired values. Most values of an epoch expire
// together: then its key is erased. The data keys of the others, which were updated, are
// moved before: they are encrypted with the current epoch key, and each is erased when its
// value has expired.
//
//	epoch 1 │ data a │ data b │ epoch 2 │ data c │ … │ epoch 9 │ moved b │
//	   ╳        ╳        ╳                                          └ until b expires
func (v *valueSealer) expireKeys(ctx context.Context) error {
	info, err := v.log.Info(ctx)
	if err != nil {
		return err
	}
	now := v.bucket.store.cfg.Now()
	if _, err := v.readEpochs(ctx); err != nil {
		return err
	}
	v.changing.RLock()
	current := v.current
	v.changing.RUnlock()
	if now.Sub(current.since) >= v.epochLength() && info.Last > current.seq { // it was used
		if err := v.beginEpoch(ctx); err != nil {
			return err
		}
	}
	v.mu.Lock()
	epochs := slices.SortedFunc(maps.Values(v.epochs), func(a, b *keyEpoch) int { return cmp.Compare(a.seq, b.seq) })
	v.mu.Unlock()
	keep := v.maxAge + v.epochLength()/4
	if v.isShared() {
		keep = max(keep, epochGrace)
	}
	for i := range len(epochs) - 1 {
		next := epochs[i+1]
		// The engine removes expired values a little later, and a value is often updated
		// shortly after it was created.
		if now.Sub(next.since) < keep {
			break
		}
		if err := v.endEpoch(ctx, epochs[i], next); err != nil {
			return err
		}
	}
	return v.log.Read(ctx, ReadFrom{Subject: v.keySubject("moved", ">")}, func(m Message) error {
		return v.withDataKey(ctx, m, func(_ string, _ *contentkey.Key, used bool) error {
			if used {
				return nil
			}
			return v.log.Delete(ctx, m.Seq)
		})
	})
}

// endEpoch moves the data keys in use, and erases the key of the epoch.
func (v *valueSealer) endEpoch(ctx context.Context, epoch, next *keyEpoch) error {
	err := v.log.Read(ctx, ReadFrom{Seq: epoch.seq, Subject: v.keySubject("*", ">")}, func(m Message) error {
		if m.Seq > next.seq && (!v.isShared() || m.At.After(next.since.Add(epochGrace))) {
			return ErrStop
		}
		if id, _ := contentkey.KeyOf(m.Data); m.Seq > next.seq && id != epoch.key.ID() {
			return nil
		}
		return v.withDataKey(ctx, m, func(key string, dataKey *contentkey.Key, used bool) error {
			if !used {
				return nil
			}
			return v.moveKey(ctx, m, key, dataKey)
		})
	})
	if err != nil {
		return err
	}
	if err := v.log.Delete(ctx, epoch.seq); err != nil {
		return err
	}
	v.mu.Lock()
	delete(v.epochs, epoch.key.ID())
	v.mu.Unlock()
	return v.log.Trim(ctx, next.seq)
}

// moveKey stores a data key with the current epoch. If another process has erased it
// meanwhile, it is erased there as well; see eraseDataKeys.
func (v *valueSealer) moveKey(ctx context.Context, m Message, key string, dataKey *contentkey.Key) error {
	moved, err := v.storeDataKey(ctx, v.keySubject("moved", key), dataKey)
	if err != nil || !v.isShared() {
		return err
	}
	if _, err = v.log.Get(ctx, m.Seq); errors.Is(err, ErrNotFound) {
		return v.log.Delete(ctx, moved)
	}
	return err
}

// withDataKey calls fn with a stored data key, unless it was erased meanwhile, and whether its
// value exists. It is not erased while fn runs.
func (v *valueSealer) withDataKey(ctx context.Context, m Message, fn func(key string, dataKey *contentkey.Key, used bool) error) error {
	v.erasing.Lock()
	defer v.erasing.Unlock()
	dataKey, err := v.openDataKey(ctx, m)
	if err != nil || dataKey == nil {
		return err
	}
	if _, err := v.log.Get(ctx, m.Seq); errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	key := strings.SplitN(m.Subject, ".", 4)[3] // see keySubject
	used, err := v.isUsed(ctx, key, dataKey.ID())
	if err != nil {
		return err
	}
	return fn(key, dataKey, used)
}

// isUsed reports whether a value is, or may be, encrypted with this data key.
func (v *valueSealer) isUsed(ctx context.Context, key string, id contentkey.ID) (bool, error) {
	v.mu.Lock()
	pending := v.pending[id] != nil
	v.mu.Unlock()
	if pending {
		return true, nil
	}
	entry, err := v.bucket.getEntry(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	k := v.lookUp(key)
	return k.key == nil || k.revision != entry.Revision || k.key.ID() == id, nil
}
