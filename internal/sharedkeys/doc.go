// Package sharedkeys shares keys between the replicas of a router: the processes that use
// one external store. They accept each other's tokens, and encrypt stored contents with the
// same keys.
//
//	bucket SHARED_KEYS
//	  keyring          which keys encrypt stored contents; written by the first replica
//	  task_secrets     the secrets of callback tokens, rotated
//	  replica.<name>   the accepted public keys of a replica, renewed every 20 s
//
// A [Directory] publishes the public keys of its replica, and gives those of the others
// and the secrets to the [keyring.Ring]:
//
//	agreed, err := sharedkeys.CheckKeyring(ctx, bucket, ring) // refuses another keyring
//	directory, err := sharedkeys.Open(ctx, sharedkeys.Config{Bucket: bucket, Keys: ring, SigningKeys: keys, Replica: name})
//	group.Go("publish keys", directory.Run)
//	group.Go("follow keys", directory.Follow)
//	defer directory.Close(ctx)
//
// # Trust
//
// Every row is encrypted and authenticated with the key of stored contents, so that a
// program that can write to the store and does not have this key cannot add a signing key
// or learn a secret. The associated data contains a random name of the store and the key of
// the row: a row of another store, or of another replica, is rejected. An earlier row of the
// same replica is rejected because each one has the time of its issue, and replicas accept
// only a later one than they know. A replica that has just started knows none: it accepts
// an earlier row if its writer has not written a newer one, for an hour after its issue.
// Such a program can delete rows; their writers restore them within seconds.
//
// # Public keys
//
// The keys of a replica that has ended are accepted for an hour after it last published
// them, because agents may hold tokens that it signed. A replica removes revoked keys from
// its row within seconds; the others do not accept them once they have received the row.
// While the store does not answer, no key expires.
//
// # Secrets of callback tokens
//
//	created ── published, 2 minutes ──▶ signs … 7 days ▶ next one created ── 2 minutes ──▶ accepted for 24 h 5 min
//
// If a replica revokes its signing keys, the secrets that were created before are not
// accepted any more, and a new one signs at once.
//
// # The keyring of contents
//
// The first replica stores which keyring is used. A start with another one is refused. To
// rotate a key, add the new one to the second line on each replica, then move it to the
// first line on each replica: a start is refused if it would encrypt with a key that a
// running replica does not have.
package sharedkeys
