package auth

import (
	"errors"
	"fmt"
	"time"
)

// cleanupRetry is how long Reload leaves a private half alone that it could not
// remove. It counts no more in any case.
const cleanupRetry = time.Hour

// Reload takes the keys of the directory as they are now, and reports whether
// anything was touched there. An error leaves the keys as they were. Where
// nothing was touched, it costs a look at each file. It replaces the key files
// of keys that have ended by their public halves.
func (s *Signer) Reload(now time.Time) (changed bool, err error) {
	r := s.store
	if r.dir == "" {
		return false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	files, err := readKeyFiles(r.dir, r.files)
	if err != nil {
		return false, fmt.Errorf("reload keys: %w", err)
	}
	if changed = !files.isSame(r.files); changed {
		r.files = files
		r.setKeys(files.keyring())
	}
	return changed, r.removeExpiredKeys(now)
}

// removeExpiredKeys must be called with mu held.
func (r *keyStore) removeExpiredKeys(now time.Time) error {
	ended := false
	for _, k := range r.state.Load().keys {
		ended = ended || k.private != nil && !k.isAccepted(now)
	}
	if !ended || now.Before(r.nextCleanup) {
		return nil
	}
	change := newRotation(r.dir, now)
	unlock, err := change.lockKeyring(false)
	if errors.Is(err, errLocked) {
		return nil // whoever rotates removes them as well
	}
	r.nextCleanup = now.Add(cleanupRetry)
	if err != nil {
		return fmt.Errorf("remove keys that have ended: %w", err)
	}
	defer unlock()
	if change.files, err = readKeyFiles(r.dir, r.files); err == nil {
		err = change.removePrivateKeys()
	}
	if err = errors.Join(err, removeKeyringTempFiles(r.dir, time.Now())); err != nil {
		return fmt.Errorf("remove keys that have ended: %w", err)
	}
	return nil
}
