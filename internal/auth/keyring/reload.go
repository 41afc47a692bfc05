package keyring

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
func (r *Ring) Reload(now time.Time) (changed bool, err error) {
	s := r.store
	if s.dir == "" {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	files, err := readKeyFiles(s.dir, s.files)
	if err != nil {
		return false, fmt.Errorf("reload keys: %w", err)
	}
	if changed = !files.isSame(s.files); changed {
		s.files = files
		s.setKeys(files.keys())
	}
	return changed, s.removeExpiredKeys(now)
}

// removeExpiredKeys removes the private halves of expired keys. The caller holds
// mu.
func (s *keyStore) removeExpiredKeys(now time.Time) error {
	ended := false
	for _, k := range s.state.Load().keys {
		ended = ended || k.private != nil && !k.isAccepted(now)
	}
	if !ended || now.Before(s.nextCleanup) {
		return nil
	}
	change := newRotation(s.dir, now)
	unlock, err := change.lockKeyring(false)
	if errors.Is(err, errLocked) {
		return nil // the rotating process removes them as well
	}
	s.nextCleanup = now.Add(cleanupRetry)
	if err != nil {
		return fmt.Errorf("remove keys that have ended: %w", err)
	}
	defer unlock()
	if change.files, err = readKeyFiles(s.dir, s.files); err == nil {
		err = change.removePrivateKeys()
	}
	if err = errors.Join(err, removeKeyringTempFiles(s.dir, time.Now())); err != nil {
		return fmt.Errorf("remove keys that have ended: %w", err)
	}
	return nil
}
