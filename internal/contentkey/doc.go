// Package contentkey encrypts stored contents with AES-256-GCM. A [Keyring] holds the
// operator's master keys; a [Key] is a random data key, which is stored wrapped by a
// master key or by another data key.
//
//	ring, err := contentkey.OpenFile(path)     // one key in each line; the first one encrypts
//	sealed := ring.Seal(content, recordID)
//	content, err := ring.Open(sealed, recordID) // with any key of the ring
//
// The associated data (recordID) binds a content to its place, so that a content that was
// moved elsewhere is rejected. Every sealed content names its key:
//
//	1 │ master key id 8 │ salt 16 │ nonce 12 │ ciphertext │ tag 16     by a Keyring
//	2 │ data key id 16  │           nonce 12 │ ciphertext │ tag 16     by a Key
//
// A nonce is random, so one key must not encrypt more than 2^32 contents. A process
// therefore encrypts with a subkey of the master key (HKDF with a random salt) of its own.
//
// Rotation: write a new key in the first line and restart. Older keys decrypt until they
// are removed; nothing is encrypted again.
package contentkey
