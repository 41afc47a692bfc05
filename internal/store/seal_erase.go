package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/internal/contentkey"
)

// maxEraseTries bounds how often eraseHistory begins again after a lost race.
const maxEraseTries = 16

// erase erases the data keys of a key, so that no revision of its value can be read.
func (v *valueSealer) erase(ctx context.Context, key string) error {
	if err := v.waitPending(ctx, key); err != nil {
		return err
	}
	switch _, err := v.log.Last(ctx, v.keySubject("*", key)); {
	case errors.Is(err, ErrNotFound):
		return v.eraseClear(ctx, key)
	case err != nil:
		return err
	}
	return v.eraseDataKeys(ctx, key, func(contentkey.ID) bool { return true })
}

// eraseClear overwrites a value that an earlier version stored in clear.
func (v *valueSealer) eraseClear(ctx context.Context, key string) error {
	m, err := v.bucket.readLatest(ctx, key)
	if errors.Is(err, ErrNotFound) || err == nil && len(m.Data) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return v.bucket.store.eraseMessage(ctx, v.bucket.stream, m.Seq)
}

// eraseHistory replaces the data key of a key, so that no earlier revision can be read.
func (v *valueSealer) eraseHistory(ctx context.Context, key string) error {
	for range maxEraseTries {
		err := v.waitPending(ctx, key)
		var old []storedKey
		if err == nil {
			old, err = v.listDataKeys(ctx, key)
		}
		var m Message
		if err == nil {
			m, err = v.bucket.readLatest(ctx, key)
		}
		var entry Entry
		if err == nil {
			entry, err = v.bucket.toEntry(ctx, m)
		}
		if err == nil && len(entry.Value) > 0 {
			_, err = v.putWithNewKey(ctx, key, entry.Value, &m.Seq)
		}
		switch {
		case errors.Is(err, ErrConflict):
			continue
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		}
		// A later write uses the new data key, or one that is not listed.
		return v.eraseDataKeys(ctx, key, func(id contentkey.ID) bool {
			return slices.ContainsFunc(old, func(k storedKey) bool { return k.key != nil && k.key.ID() == id })
		})
	}
	return ErrConflict
}

// waitPending waits for the writes of new data keys of a key.
func (v *valueSealer) waitPending(ctx context.Context, key string) error {
	v.mu.Lock()
	var waits []*pendingKey
	for _, p := range v.pending {
		if p.name == key {
			waits = append(waits, p)
		}
	}
	v.mu.Unlock()
	for _, p := range waits {
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
		}
	}
	return nil
}

// eraseDataKeys overwrites the selected data keys of a key, until none is left: another
// process may move one to another epoch meanwhile.
func (v *valueSealer) eraseDataKeys(ctx context.Context, key string, selects func(contentkey.ID) bool) error {
	v.erasing.Lock()
	defer v.erasing.Unlock()
	for more := true; more; {
		keys, err := v.listDataKeys(ctx, key)
		if err != nil {
			return err
		}
		more = false
		for _, k := range keys {
			if k.key != nil && !selects(k.key.ID()) {
				continue
			}
			if err := v.log.Delete(ctx, k.seq); err != nil {
				return err
			}
			more = v.isShared()
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.cachedKeys[key]; k.key != nil && selects(k.key.ID()) {
		delete(v.cachedKeys, key)
	}
	return nil
}

// EraseHistory makes the earlier revisions of a key unreadable. It can be repeated. In a
// bucket whose values are not encrypted it does nothing.
func (b *Bucket) EraseHistory(ctx context.Context, key string) error {
	if b.sealer == nil {
		return nil
	}
	err := checkKey(key)
	if err == nil {
		err = b.sealer.eraseHistory(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("erase the history of %s/%s: %w", b.name, key, err)
	}
	return nil
}
