// Package auth verifies callers' tokens and issues the tokens of the router. It does not
// decide what a caller may do: the HTTP server checks scopes, and the matcher checks
// entitlement. The keys of the router are in package keyring.
//
//	callers' tokens ──▶ Verifier ──▶ *contract.Caller
//	                      │  key of   an identity provider: RemoteKeys, fetched
//	                      │           the router itself: keyring.Ring
//	                      │           the configuration: StaticKey
//	                      └─ caches verified tokens
//
//	Issuer ──▶ tokens for agents · for tasks (callbacks) · for callers
//
// # Tokens of callers
//
// Callers send access tokens as in RFC 9068, with strict rules: those of
// package strictjwt for the form, one audience, and a lifetime of at most a day.
// [Verifier.Verify] returns the reason if a token is invalid; before the signature is
// verified, the reason contains no claim.
//
// # Tokens for agents
//
// A token permits exactly one agent to work for one caller (the form of RFC 8693,
// section 4.1). The caller's own token is never forwarded.
//
//	header  {"typ":"at+jwt","alg":"EdDSA" or "ES256","kid":"<RFC 7638 thumbprint>"}
//	claims  iss    the router            aud  the agent
//	        sub    the caller            act  {"sub": the router}
//	        sub_id {"format":"iss_sub","iss": issuer of the caller,"sub": the caller}
//	        tenant of the caller         (both only if the caller has one)
//	        scope  "task:execute"        task_id  the task (absent if the token is reused)
//	        iat, exp, jti
//
// Agents verify it with the public keys of the router's key set, which contains a key
// for each of the two algorithms:
//
//	issuer, err := auth.NewIssuer(ring, jwk.ES256) // EdDSA, or ES256 for agents without Ed25519
//	token, err := issuer.AgentToken(auth.AgentGrant{…})
//
// # Tokens of agents
//
// An agent that posts its result later uses the callback token of the task. Only
// the router that issued it, and its replicas, verify it, so a MAC is sufficient, with a
// key derived from the signing key or from a secret of the replicas (RFC 5869). It costs
// an eighth of a signature.
//
//	header  {"typ":"caprouter-task+jwt","alg":"HS256"}, exactly these bytes
//	claims  iss, aud  the router         sub  the agent
//	        scope     "tasks:work"       task_id, request_id
//	        iat, exp, jti
//
// Secrets are never printed: a StaticKey formats as <redacted> in fmt and slog.
package auth
