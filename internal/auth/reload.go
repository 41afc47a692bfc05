package auth

import (
	"errors"
	"fmt"
	"time"
)

// cleanupRetry is the pause before Reload tries again to remove a private half.
// The key is not accepted in the meantime.
const cleanupRetry = time.Hour

// Reload loads the keys of the directory and reports whether they changed. If it
// returns an error, the previous keys stay in use. If nothing changed, it costs
// one stat call per file. It also replaces the files of expired keys by their
// public halves.
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

// removeExpiredKeys removes the private halves of expired keys. The caller holds
// mu.
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
		return nil // the rotating process removes them as well
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
