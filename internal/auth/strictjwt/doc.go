// Package strictjwt verifies JSON Web Tokens (RFC 7519) with strict rules: compact
// serialization, canonical base64url, each name of an object once and in one spelling, one
// algorithm for each key, and no key or certificate in the token.
//
//	parser := strictjwt.NewParser()
//	claims, err := parser.Parse(token, func(h *strictjwt.Header, unverified strictjwt.Claims) (strictjwt.Key, error) {
//		// the key that the issuer of the token must have signed it with
//	})
//	subject, err := claims.Name("sub")
//
// The claims of a token are not checked until they are read: [Claims.Name] and the other
// methods return an error for a claim of another type or form. Whether a key is trusted,
// and which claims a token must have, is the caller's decision.
package strictjwt
