// Package quota divides a part of the store between its owners: the tenants, and the
// callers without one. A [Ledger] counts the bytes of one part by owner. An owner that
// has used up its share gets quota_exceeded, or loses its oldest values first,
// depending on what is stored; the values of others stay.
//
//	keys := quota.New(quota.Config{Part: "idempotency keys", Limit: 64 << 20, Share: 0.25, MaxAge: 24 * time.Hour})
//	bucket := store.BucketConfig{…, OnWrite: keys.Written}
//	…
//	if err := keys.Admit(quota.OwnerOf(caller), key); err != nil {
//		return err // 429 quota_exceeded
//	}
//	_, err := bucket.Create(ctx, key, value)
//
// A ledger is in memory and derived from the keys of its bucket, which are read once
// after the start. If other processes write to the bucket, they are read again regularly
// ([Ledger.Recount]): until then the ledger does not know what the others have stored since,
// so that an owner can exceed its share by that. It starts no goroutines.
package quota
