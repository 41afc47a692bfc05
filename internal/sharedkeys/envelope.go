package sharedkeys

import (
	"context"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Keys of the bucket.
const (
	keyringKey    = "keyring"
	secretsKey    = "task_secrets"
	replicaPrefix = "replica."
)

// BucketConfig describes the bucket. Its values are encrypted by this package, because
// the keyring of the store is one of them, and because they are watched.
func BucketConfig() store.BucketConfig { return store.BucketConfig{Name: "SHARED_KEYS", KeyTTL: true} }

// envelope encrypts the rows of one store.
type envelope struct {
	keys    *contentkey.Keyring
	storeID string // "" for the row with the id itself
}

// associatedData binds a row to its store and its key.
func (e *envelope) associatedData(key string) []byte {
	return []byte("caprouter shared key\x00" + e.storeID + "\x00" + key)
}

func (e *envelope) seal(key string, record any) ([]byte, error) {
	data, err := strictjson.Marshal(record)
	if err != nil {
		return nil, err
	}
	return e.keys.Seal(data, e.associatedData(key)), nil
}

// open decrypts and decodes a row. Only a replica with the same keyring can have written
// it.
func (e *envelope) open(key string, sealed []byte, record any) error {
	data, err := e.keys.Open(sealed, e.associatedData(key))
	if err != nil {
		return err
	}
	return strictjson.UnmarshalAllowUnknown(data, record) // a later version may add members
}

// keyringRecord is the row with the keyring. That it can be decrypted proves that a ring
// contains the key that encrypted it.
type keyringRecord struct {
	Store string `json:"store"` // random name of the store
}

// CheckKeyring reports whether the replicas of a store have agreed on a keyring. The error
// explains what to configure if the ring is not theirs. A ring without keys is permitted,
// to learn whether a new key may be made.
func CheckKeyring(ctx context.Context, bucket *store.Bucket, ring *contentkey.Keyring) (agreed bool, err error) {
	entry, err := bucket.Get(ctx, keyringKey)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = openKeyring(ring, &entry)
	return true, err
}

func openKeyring(ring *contentkey.Keyring, entry *store.Entry) (record keyringRecord, err error) {
	err = (&envelope{keys: ring}).open(keyringKey, entry.Value, &record)
	if err == nil && record.Store == "" {
		err = contentkey.ErrAltered
	}
	if contentkey.IsUnknownKey(err) {
		err = fmt.Errorf("another keyring than that of the other replicas: %w. All replicas of a store need the same keys: "+
			"copy those of a running replica to a file (mode 0600) and name it with store.encryption.key_file, "+
			"or put them in a variable and name that with store.encryption.key_env", err)
	}
	if err != nil {
		return record, fmt.Errorf("keys of stored contents: %w", err)
	}
	return record, nil
}

// agreeOnKeyring returns the envelope of the store's rows. The first replica chooses the
// keyring. A row that an older key of the ring encrypted is encrypted again, so that the
// older key can be removed after a rotation.
func agreeOnKeyring(ctx context.Context, bucket *store.Bucket, ring *contentkey.Keyring, storeID string) (env *envelope, created bool, err error) {
	first := &envelope{keys: ring}
	var record keyringRecord
	_, err = store.CompareAndSet(ctx, bucket, keyringKey, func(entry store.Entry) ([]byte, error) {
		created, record = entry.Revision == 0, keyringRecord{Store: storeID}
		if !created {
			var err error
			if record, err = openKeyring(ring, &entry); err != nil {
				return nil, err
			}
			if ring.SealedByCurrent(entry.Value) {
				return nil, store.ErrStop
			}
		}
		return first.seal(keyringKey, record)
	})
	if err != nil {
		return nil, false, err
	}
	return &envelope{keys: ring, storeID: record.Store}, created, nil
}

// ForgetKeyring undoes the choice of a keyring that cannot decrypt the contents of the
// store: an earlier version stored them without a choice.
func ForgetKeyring(ctx context.Context, bucket *store.Bucket) error {
	return bucket.Delete(ctx, keyringKey)
}
