package keyring

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

	"github.com/caprouter/caprouter/internal/datadir"
)

// retiredDir is the directory of former keys in the data directory: KID.key, or
// KID.pub if the private half was removed.
const retiredDir = "retired-keys"

const (
	privateSuffix = ".key"
	publicSuffix  = ".pub"
	publicPEMType = "PUBLIC KEY"
	// keyringLockFile is locked by the process that changes the ring. The file
	// itself is never removed and has no meaning.
	keyringLockFile = "lock"
)

// errLocked is returned if another process holds the lock and the caller does not
// wait.
var errLocked = errors.New("another process changes the keys; try again")

// retiredNames lists the key files of the directory, none if it does not exist.
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

// keyIDOfFile returns the key id in the name of a retired key's file.
func keyIDOfFile(name string) string {
	name = filepath.Base(name)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

func retiredPath(id, suffix string) string { return filepath.Join(retiredDir, id+suffix) }

// List describes the keys of dir, youngest first. It returns fs.ErrNotExist if
// there is none.
func List(dir string, now time.Time) ([]Info, error) {
	if err := datadir.Check(dir); err != nil {
		return nil, err
	}
	files, err := readKeyFiles(dir, nil)
	if err != nil {
		return nil, err
	}
	return files.keys().keyInfos(now), nil
}

// Rotation is the result of Rotate.
type Rotation struct {
	New Info   `json:"new"`
	Old []Info `json:"old"` // keys that are accepted, or were until now; youngest first
}

// Rotate creates a new current key in dir, also while a router uses it. The
// old key signs until the new one is published everywhere, and verifies until its
// tokens have expired. With revoke, the private halves of all old keys are removed
// at once, and their signatures are accepted only for the audit log. The user must
// own the keys, because otherwise the router could not read the new one.
//
// If the process is killed at any step, there is a current key and no key is lost:
// the old key is stored elsewhere before the new key takes its name.
func Rotate(dir string, revoke bool, now time.Time) (*Rotation, error) {
	r := newRotation(dir, now)
	done, err := r.rotate(revoke)
	if err != nil {
		return nil, fmt.Errorf("rotate keys: %w", err)
	}
	return done, nil
}

// rotation changes a key ring on disk, step by step.
type rotation struct {
	dir       string
	now       time.Time
	files     keyFiles
	uid       int                     // owner of the files; -1 if the system has no user ids
	afterStep func(step string) error // called after each step, which is then durable
}

func newRotation(dir string, now time.Time) *rotation {
	return &rotation{dir: dir, now: now, uid: os.Geteuid(), afterStep: func(string) error { return nil }}
}

func (r *rotation) rotate(revoke bool) (*Rotation, error) {
	if err := datadir.Check(r.dir); err != nil {
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
	before := r.files.keys().viewAt(r.now)
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

// checkOwner returns an error if the router could not read files of this user: it
// would keep its old keys, and revoked keys would stay accepted.
func (r *rotation) checkOwner() error {
	path := filepath.Join(r.dir, File)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("there is no key: %w", err) // do not create a directory
	}
	if uid, known := ownerOf(info); known && uid != r.uid {
		return fmt.Errorf("signing key %s belongs to uid %d: run it as that user, e.g. sudo -u '#%d' caprouter keys rotate", path, uid, uid)
	}
	return nil
}

// lockKeyring locks the ring against other processes. It creates the directory if
// needed.
func (r *rotation) lockKeyring(wait bool) (unlock func(), err error) {
	dir := filepath.Join(r.dir, retiredDir)
	if err := os.Mkdir(dir, keyDirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := datadir.SyncDir(r.dir); err != nil {
		return nil, err
	}
	return lockFile(filepath.Join(dir, keyringLockFile), wait)
}

// retireCurrent copies the current key to the retired ones. It stays the current
// key until a new key takes its name.
func (r *rotation) retireCurrent() error {
	block, f, err := readKeyPEM(filepath.Join(r.dir, File), recreateHint)
	if err != nil {
		return err
	}
	current := r.files[File]
	if !isUnchanged(f.info, current.info) {
		return datadir.ErrReplaced // by a process that does not lock
	}
	times := keyTimes{created: current.created, retired: r.now, revoked: r.files.currentRevoked()}
	path := filepath.Join(r.dir, retiredPath(current.pair.id, privateSuffix))
	if err := replaceFile(path, times.encodePEM(&pem.Block{Type: pemType, Bytes: block.Bytes})); err != nil {
		return err
	}
	if err := r.afterStep("retired the current key"); err != nil {
		return err
	}
	// An interrupted revocation may have left this file, which would revoke the
	// key.
	public := filepath.Join(r.dir, retiredPath(current.pair.id, publicSuffix))
	if err := os.Remove(public); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.afterStep("removed its public half")
}

// revokeAll writes the public halves of all keys that have a private half. From
// then on the private halves are not accepted, except the current one.
func (r *rotation) revokeAll() error {
	for name, f := range r.files {
		if f.pair.private == nil || r.files[retiredPath(f.pair.id, publicSuffix)] != nil && name != File {
			continue
		}
		times := keyTimes{created: f.created, retired: f.retired, revoked: r.now}
		if name == File {
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

// replaceCurrent makes a new key the current one.
func (r *rotation) replaceCurrent() (id string, err error) {
	content, id, err := newKeyFile(r.now)
	if err != nil {
		return "", err
	}
	if err := replaceFile(filepath.Join(r.dir, File), content); err != nil {
		return "", err
	}
	return id, r.afterStep("made the new key")
}

// removePrivateKeys removes the private halves of revoked and expired keys.
func (r *rotation) removePrivateKeys() error {
	current := r.files[File].pair.id
	var errs []error
	for name, f := range r.files {
		if name == File || f.pair.private == nil || f.pair.id == current {
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
	return errors.Join(append(errs, datadir.SyncDir(filepath.Join(r.dir, retiredDir)))...)
}

// summarize describes the new key, and the keys that were accepted before.
func (r *rotation) summarize(id string, before *keyView) *Rotation {
	done := &Rotation{Old: []Info{}}
	for _, info := range r.files.keys().keyInfos(r.now) {
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
