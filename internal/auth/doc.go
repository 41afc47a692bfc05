// Package auth verifies callers' tokens and manages the signing keys of the
// router. It does not decide what a caller may do: the HTTP server checks scopes,
// and the matcher checks entitlement.
//
//	callers' tokens ──▶ Verifier ──▶ *contract.Caller
//	                      │  key of   an identity provider: RemoteKeys, fetched
//	                      │           the router itself: Signer
//	                      │           the configuration: StaticKey
//	                      └─ caches verified tokens
//
//	Signer ──▶ tokens for agents · for tasks (callbacks) · for callers
//	       └─▶ signatures of the audit log
//
// # Tokens of callers
//
// Callers send access tokens as in RFC 9068, with strict rules: compact
// serialization, one algorithm for each key, no key in the token, one audience, a
// lifetime of at most a day. [Verifier.Verify] returns the reason if a token is
// invalid; before the signature is verified, the reason contains no claim. Strict checks
// of the form come first, then the parser of golang-jwt verifies the signature and
// decodes the claims, then the claims are checked.
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
//	signer, err := auth.OpenSigner(dataDir)       // Ed25519, created once
//	signer, err = signer.WithAgentAlg(auth.AlgES256) // for agents without Ed25519
//	token, err := signer.AgentToken(auth.AgentGrant{…})
//	mux.Handle("/.well-known/jwks.json", …signer.JWKS()…)
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
// # Keys
//
// A Signer has a ring of keys: one signs, the others verify until their tokens
// expire ([RotateKeys]). Two keys are derived from each: the P-256 key of tokens for
// agents with ES256, which is published beside the Ed25519 key, and the key of tokens
// for callers, which is in no key set, so that no agent accepts such a token. Thus
// one file contains all secrets, and they are rotated and revoked together.
//
// # Replicas
//
// Routers that share a store accept each other's tokens. [Signer.SetPeerKeys] adds the
// accepted public keys of the others to the key set and to those that verify callers'
// tokens. Callback tokens have no public key, so the replicas share secrets:
// [Signer.SetTaskSecrets]. The package that transports both authenticates them.
//
// # Signatures
//
// [Signer.Sign] signs data that is not a token. The purpose is part of the signed
// bytes, after a prefix that no token has, so that a signature is valid for one
// purpose only.
//
// Keys and secrets are never printed: a Signer and a StaticKey format as
// <redacted> in fmt and slog.
package auth
