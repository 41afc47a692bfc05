package auth

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RetiredDir is the directory of the keys that were current before, in the data
// directory: KID.key, and KID.pub when the private half is gone.
const RetiredDir = "retired-keys"

const (
	privateSuffix = ".key"
	publicSuffix  = ".pub"
	publicPEMType = "PUBLIC KEY"
	// keyringLockFile is locked by who changes the ring. It stays, and says nothing.
	keyringLockFile = "lock"
)

// errLocked is met by who does not wait for the lock.
var errLocked = errors.New("another process changes the keys; try again")

// retiredNames lists the key files of the directory, none when it is not there.
func retiredNames(dir string) ([]string, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("retired keys: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("retired keys: %s is not a directory; move it away", dir)
	}
	if err := checkRetiredDir(dir, info); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("retired keys: %w", err)
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == privateSuffix || ext == publicSuffix {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// keyIDOfFile is the id of the key that a retired key's file is named after.
func keyIDOfFile(name string) string {
	name = filepath.Base(name)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

func retiredPath(id, suffix string) string { return filepath.Join(RetiredDir, id+suffix) }

// ListKeys describes the keys of dir, the youngest first; fs.ErrNotExist when there
// is none.
func ListKeys(dir string, now time.Time) ([]KeyInfo, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	files, err := readKeyFiles(dir, nil)
	if err != nil {
		return nil, err
	}
	return files.keyring().keyInfos(now), nil
}

// Keys describes the keys of the ring, the youngest first.
func (s *Signer) Keys(now time.Time) []KeyInfo { return s.store.state.Load().keys.keyInfos(now) }

// Rotation is what RotateKeys did.
type Rotation struct {
	New KeyInfo   `json:"new"`
	Old []KeyInfo `json:"old"` // whose tokens count, or did until now; the youngest first
}

// RotateKeys makes a new key the current one of dir, in which a router may be
// running. The old one signs until the new one is known everywhere, and verifies
// until what it signed has ended. With revoke the private halves of all old keys
// are gone at once, and what they signed counts no more, but for the audit trail.
// It is for the user who owns the keys: the router could not read another's.
//
// Whatever ends the process on the way, there is a current key and no key is
// lost: the old one is on disk elsewhere before the new one takes its name.
func RotateKeys(dir string, revoke bool, now time.Time) (*Rotation, error) {
	r := newRotation(dir, now)
	done, err := r.rotate(revoke)
	if err != nil {
		return nil, fmt.Errorf("rotate keys: %w", err)
	}
	return done, nil
}

// rotation changes a ring on disk, step by step.
type rotation struct {
	dir       string
	now       time.Time
	files     keyFiles
	uid       int                     // who makes the files; -1 where there is no such number
	afterStep func(step string) error // told after each step, which is on disk by then
}

func newRotation(dir string, now time.Time) *rotation {
	return &rotation{dir: dir, now: now, uid: os.Geteuid(), afterStep: func(string) error { return nil }}
}

func (r *rotation) rotate(revoke bool) (*Rotation, error) {
	if err := checkDir(r.dir); err != nil {
		return nil, err
	}
	if err := r.checkOwner(); err != nil {
		return nil, err
	}
	unlock, err := r.lockKeyring(true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeKeyringTempFiles(r.dir, time.Now()); err != nil {
		return nil, err
	}
	if r.files, err = readKeyFiles(r.dir, r.files); err != nil {
		return nil, err
	}
	before := r.files.keyring().viewAt(r.now)
	if revoke {
		err = r.revokeAll()
	} else {
		err = r.retireCurrent()
	}
	if err != nil {
		return nil, err
	}
	id, err := r.replaceCurrent()
	if err != nil {
		return nil, err
	}
	if r.files, err = readKeyFiles(r.dir, r.files); err != nil {
		return nil, err
	}
	if err := r.removePrivateKeys(); err != nil {
		return nil, err
	}
	return r.summarize(id, before), nil
}

// checkOwner refuses to make files that the router could not read: it would go on
// with the keys it has, and what is revoked would count as before.
func (r *rotation) checkOwner() error {
	path := filepath.Join(r.dir, KeyFile)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("there is no key: %w", err) // and no directory is made for one
	}
	if uid, known := ownerOf(info); known && uid != r.uid {
		return fmt.Errorf("signing key %s belongs to uid %d: run it as that user, e.g. sudo -u '#%d' caprouter keys rotate", path, uid, uid)
	}
	return nil
}

// lockKeyring keeps others from changing the ring. The directory is made for it.
func (r *rotation) lockKeyring(wait bool) (unlock func(), err error) {
	dir := filepath.Join(r.dir, RetiredDir)
	if err := os.Mkdir(dir, keyDirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := syncDir(r.dir); err != nil {
		return nil, err
	}
	return lockFile(filepath.Join(dir, keyringLockFile), wait)
}

// retireCurrent puts the current key among the retired ones. It keeps its name until a
// new one takes it, and is the current key as long as it has it.
func (r *rotation) retireCurrent() error {
	block, f, err := readKeyPEM(filepath.Join(r.dir, KeyFile), recreateHint)
	if err != nil {
		return err
	}
	current := r.files[KeyFile]
	if !isUnchanged(f.info, current.info) {
		return errReplaced // by somebody who takes no lock
	}
	times := keyTimes{created: current.created, retired: r.now, revoked: r.files.currentRevoked()}
	path := filepath.Join(r.dir, retiredPath(current.pair.id, privateSuffix))
	if err := replaceFile(path, times.encodePEM(&pem.Block{Type: pemType, Bytes: block.Bytes})); err != nil {
		return err
	}
	if err := r.afterStep("retired the current key"); err != nil {
		return err
	}
	// A revocation that was not finished may have left this, which would count.
	public := filepath.Join(r.dir, retiredPath(current.pair.id, publicSuffix))
	if err := os.Remove(public); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.afterStep("removed its public half")
}

// revokeAll writes the public halves of all keys that have a private one. From
// there on the private ones count no more, but for the current key's.
func (r *rotation) revokeAll() error {
	for name, f := range r.files {
		if f.pair.private == nil || r.files[retiredPath(f.pair.id, publicSuffix)] != nil && name != KeyFile {
			continue
		}
		times := keyTimes{created: f.created, retired: f.retired, revoked: r.now}
		if name == KeyFile {
			times.retired = r.now
		}
		if err := r.writePublic(f.pair, times); err != nil {
			return err
		}
	}
	return nil
}

func (r *rotation) writePublic(pair *keyPair, times keyTimes) error {
	der, err := x509.MarshalPKIXPublicKey(pair.public)
	if err != nil {
		return err
	}
	path := filepath.Join(r.dir, retiredPath(pair.id, publicSuffix))
	if err := replaceFile(path, times.encodePEM(&pem.Block{Type: publicPEMType, Bytes: der})); err != nil {
		return err
	}
	return r.afterStep("wrote a public half")
}

// replaceCurrent puts a new key in the place of the current one.
func (r *rotation) replaceCurrent() (id string, err error) {
	content, id, err := newKeyFile(r.now)
	if err != nil {
		return "", err
	}
	if err := replaceFile(filepath.Join(r.dir, KeyFile), content); err != nil {
		return "", err
	}
	return id, r.afterStep("made the new key")
}

// removePrivateKeys removes the private halves of keys that were revoked or have ended.
func (r *rotation) removePrivateKeys() error {
	current := r.files[KeyFile].pair.id
	var errs []error
	for name, f := range r.files {
		if name == KeyFile || f.pair.private == nil || f.pair.id == current {
			continue
		}
		public := r.files[retiredPath(f.pair.id, publicSuffix)] != nil
		k := signingKey{keyPair: f.pair, created: f.created, retired: f.retired}
		if !public && k.isAccepted(r.now) {
			continue
		}
		if !public {
			if err := r.writePublic(f.pair, f.keyTimes); err != nil {
				return err
			}
		}
		if err := os.Remove(filepath.Join(r.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		if err := r.afterStep("removed a private half"); err != nil {
			return err
		}
	}
	return errors.Join(append(errs, syncDir(filepath.Join(r.dir, RetiredDir)))...)
}

// summarize describes the new key, and those whose tokens counted before.
func (r *rotation) summarize(id string, before *keyView) *Rotation {
	done := &Rotation{Old: []KeyInfo{}}
	for _, info := range r.files.keyring().keyInfos(r.now) {
		switch {
		case info.ID == id:
			done.New = info
		case before.containsKey(info.ID):
			done.Old = append(done.Old, info)
		}
	}
	return done
}

func (v *keyView) containsKey(id string) bool {
	for _, k := range v.accepted {
		if k.id == id {
			return true
		}
	}
	return false
}
