// Package keyring holds the signing keys of a router: which key signs, and which keys are
// accepted, at any time. It does not know the form of the tokens that they sign.
//
//	ring, err := keyring.Open(dataDir)            // Ed25519, created once
//	changed, err := ring.Reload(now)              // after another process rotated
//	mux.Handle("/.well-known/jwks.json", …ring.JWKS()…)
//
//	done, err := keyring.Rotate(dataDir, revoke, now)
//
// # Files
//
//	agent-signing.key        the current key
//	retired-keys/KID.key     an earlier key
//	retired-keys/KID.pub     an earlier key whose private half was removed
//	retired-keys/lock        locked by the process that changes the keys
//
// A key is one PEM block, PKCS#8 or PKIX, after lines with its times. Other users must not
// be able to read the files. A file gets its name when it is complete and synced, so that a
// process that is killed at any step leaves a ring that can be opened.
//
// # Lifetime of a key
//
// One key signs, the others verify until their tokens expire:
//
//	created ──overlap──▶ signs … retired ──overlap──▶ verifies ──life──▶ old
//
// An old or revoked key verifies signatures of the audit log only.
//
// # Derived keys
//
// Other keys are derived from each key (HKDF, RFC 5869), each with a label of its own: the
// P-256 key of tokens for agents with ES256, which is published beside the Ed25519 key, the
// key of tokens for callers, which is in no key set, so that no agent accepts such a token,
// and the key of the MAC of callback tokens. Thus one file contains all secrets, and they
// are rotated and revoked together. [Ring.TokenKeys] returns the keys that sign tokens.
//
// # Replicas
//
// Routers that share a store accept each other's tokens. [Ring.SetPeerKeys] adds the
// accepted public keys of the others to the key set and to those that verify callers'
// tokens. Callback tokens have no public key, so the replicas share secrets:
// [Ring.SetTaskSecrets]. The package that transports both authenticates them.
//
// # Signatures
//
// [Ring.Sign] signs data that is not a token. The purpose is part of the signed
// bytes, after a prefix that no token has, so that a signature is valid for one
// purpose only.
//
// Keys are never printed: a Ring formats as <redacted> in fmt and slog.
package keyring
