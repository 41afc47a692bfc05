package app

import (
	"context"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/sharedkeys"
)

// openKeys opens the keys of stored contents. With a store that replicas share, it refuses
// others than theirs, and shares the signing keys with them.
func (c *core) openKeys(ctx context.Context, opts *Options) (err error) {
	k, encryption := c.persistence, &c.cfg.Store.Encryption
	if c.cfg.Store.URL == "" {
		k.contentKeys, err = encryption.openKeys(c.cfg.DataDir, opts.lookupEnv())
		return err
	}
	k.sharedKeyBucket, err = k.store.Bucket(ctx, sharedkeys.BucketConfig())
	if err != nil {
		return err
	}
	// The default file is created by the first replica only, because the others need a
	// copy of it.
	k.contentKeys, err = encryption.readKeys(opts.lookupEnv(), func() (*contentkey.Keyring, error) {
		return contentkey.OpenExisting(c.cfg.DataDir)
	})
	if err != nil {
		return err
	}
	agreed, err := sharedkeys.CheckKeyring(ctx, k.sharedKeyBucket, k.contentKeys)
	if err == nil && !agreed {
		k.contentKeys, err = encryption.openKeys(c.cfg.DataDir, opts.lookupEnv())
	}
	if err != nil {
		return err
	}
	k.sharedKeys, err = sharedkeys.Open(ctx, sharedkeys.Config{
		Bucket: k.sharedKeyBucket, Keys: k.contentKeys, Signer: c.signer, Replica: k.members.Name(), Logger: c.log,
	})
	return err
}

// forgetKeyring undoes the choice of a keyring that cannot decrypt what an earlier version
// has stored, so that a start with the right one is not refused.
func (k *persistence) forgetKeyring(ctx context.Context, err error) error {
	if k.sharedKeys == nil || !k.sharedKeys.ChoseKeyring() || !contentkey.IsUnknownKey(err) {
		return nil
	}
	return sharedkeys.ForgetKeyring(ctx, k.sharedKeyBucket)
}
