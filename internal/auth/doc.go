// Package auth verifies callers' tokens: it decides which keys are trusted, and for which
// issuers and claims. It does not decide what a caller may do: the HTTP server checks
// scopes, and the matcher checks entitlement.
//
//	callers' tokens ──▶ Verifier ──▶ *contract.Caller
//	                      │  key of   an identity provider: RemoteKeys, fetched
//	                      │           the router itself: keyring.Ring
//	                      │           the configuration: StaticKey
//	                      └─ caches verified tokens
//
//	verifier, err := auth.NewVerifier(auth.VerifierConfig{Audience: "caprouter", Keys: keys, …})
//	caller, err := verifier.Verify(ctx, token)
//
// Callers send access tokens as in RFC 9068, with the form that package strictjwt accepts,
// one audience, and a lifetime of at most a day. A [TokenProfile] describes how the tokens
// of an identity provider differ. [Verifier.Verify] returns the reason if a token is
// invalid; before the signature is verified, the reason contains no claim.
//
// Secrets are never printed: a StaticKey formats as <redacted> in fmt and slog.
//
// The packages below are:
//
//	strictjwt  the form and the signature of tokens
//	jwk        public keys and key sets
//	weakkey    the strength of keys and secrets
//	keyring    the signing keys of the router
//	issuance   the tokens that the router issues
package auth
