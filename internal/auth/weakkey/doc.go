// Package weakkey rejects public keys and shared secrets that do not protect a
// signature, because they can be computed, guessed or looked up:
//
//	err := weakkey.CheckPublic(key)     // Ed25519, P-256 or RSA
//	err := weakkey.CheckSecret(secret)  // of HS256
//
// A public key is rejected if it is malformed, too short, a point of small order, an RSA
// key with the weakness ROCA, or if its private half is published in a document. A secret
// is rejected if it is too short, a repetition or a sequence, made of words, or published.
// A key without an error is not proved to be strong.
//
// Errors contain neither the key nor its name: the caller adds the name.
package weakkey
