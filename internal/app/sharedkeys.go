package app

import (
	"context"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/sharedkeys"
)

// openContentKeys opens the keys of stored contents. With a store that replicas share, it refuses
// others than theirs, and shares the signing keys with them.
func (c *serverCore) openContentKeys(ctx context.Context, opts *Options) (err error) {
	p, encryption := c.persistence, &c.cfg.Store.Encryption
	if c.cfg.Store.URL == "" {
		p.contentKeys, err = encryption.OpenKeys(c.cfg.DataDir, opts.EnvLookup())
		return err
	}
	p.buckets.sharedKeys, err = p.store.Bucket(ctx, sharedkeys.BucketConfig())
	if err != nil {
		return err
	}
	// The default file is created by the first replica only, because the others need a
	// copy of it.
	p.contentKeys, err = encryption.OpenExistingKeys(c.cfg.DataDir, opts.EnvLookup())
	if err != nil {
		return err
	}
	agreed, err := sharedkeys.CheckKeyring(ctx, p.buckets.sharedKeys, p.contentKeys)
	if err == nil && !agreed {
		p.contentKeys, err = encryption.OpenKeys(c.cfg.DataDir, opts.EnvLookup())
	}
	if err != nil {
		return err
	}
	p.sharedKeys, err = sharedkeys.Open(ctx, sharedkeys.Config{
		Bucket: p.buckets.sharedKeys, Keys: p.contentKeys, SigningKeys: c.keys, Replica: p.members.Name(), Logger: c.log,
	})
	return err
}

// forgetKeyring undoes the choice of a keyring that cannot decrypt what an earlier version
// has stored, so that a start with the right one is not refused.
func (p *persistence) forgetKeyring(ctx context.Context, err error) error {
	if p.sharedKeys == nil || !p.sharedKeys.ChoseKeyring() || !contentkey.IsUnknownKey(err) {
		return nil
	}
	return sharedkeys.ForgetKeyring(ctx, p.buckets.sharedKeys)
}
