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
		return v.checkKey(ctx, m, func(_ string, _ *contentkey.Key, used bool) error {
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
		return v.checkKey(ctx, m, func(key string, dataKey *contentkey.Key, used bool) error {
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
// meanwhile, it is erased there as well; see eraseKeys.
func (v *valueSealer) moveKey(ctx context.Context, m Message, key string, dataKey *contentkey.Key) error {
	moved, err := v.storeKey(ctx, v.keySubject("moved", key), dataKey)
	if err != nil || !v.isShared() {
		return err
	}
	if _, err = v.log.Get(ctx, m.Seq); errors.Is(err, ErrNotFound) {
		return v.log.Delete(ctx, moved)
	}
	return err
}

// checkKey calls fn with a stored data key, unless it was erased meanwhile, and whether its
// value exists. It is not erased while fn runs.
func (v *valueSealer) checkKey(ctx context.Context, m Message, fn func(key string, dataKey *contentkey.Key, used bool) error) error {
	v.erasing.Lock()
	defer v.erasing.Unlock()
	dataKey, err := v.openKey(ctx, m)
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
