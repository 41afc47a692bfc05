// Package jwk decodes and encodes JSON Web Keys and sets of them (RFC 7517; RFC 7518,
// section 6; RFC 8037, section 2), with strict rules:
//
//	usable, unusable, err := jwk.ParseSet(data, weakkey.CheckPublic) // of an identity provider
//	kid, entry, err := jwk.EncodeEd25519(public)                     // for the set of this router
//
// A key of a set is usable if it is a public Ed25519, P-256 or RSA key for signatures with
// EdDSA, ES256 or RS256, each member is encoded as the RFC requires, and no other key has
// its kid. Certificates in a key are ignored, and no address in it is fetched.
package jwk
