// Package auth owns whom to believe: the router's own keys and what is made with
// them, and whose a token is that a caller shows. What the caller may do with it is
// decided elsewhere: scopes by the edge, entitlement by the matcher.
//
//	callers' tokens ──▶ Verifier ──▶ *contract.Caller
//	                      │  which key?  an identity provider's: RemoteKeys, fetched
//	                      │              our own: Signer
//	                      │              of the configuration: StaticKey
//	                      └─ remembers what it has verified
//
//	Signer ──▶ tokens for agents · of tasks, for callbacks · for callers
//	       └─▶ signatures over what the router writes down
//
// # Tokens of callers
//
// Access tokens as RFC 9068 has them, read strictly: compact form, one algorithm
// a key, no key named or carried by the token itself, one audience, a life of a
// day at most. [Verifier.Verify] says what is wrong with one, and nothing of what
// it claims before its signature holds.
//
// # Tokens for agents
//
// A token lets exactly one agent do one caller's work, and says for whom and by
// whom (the shape of RFC 8693, section 4.1). The caller's own token is never
// passed on.
//
//	header  {"typ":"at+jwt","alg":"EdDSA","kid":"<RFC 7638 thumbprint>"}
//	claims  iss    the router            aud  the one agent
//	        sub    the caller            act  {"sub": the router}
//	        sub_id {"format":"iss_sub","iss": who vouches for the caller,"sub": the caller}
//	        tenant the caller's          (both where the caller has one)
//	        scope  "task:execute"        task_id  the one task (absent when reused)
//	        iat, exp, jti
//
// Agents check it against the public keys the router serves as a key set:
//
//	signer, err := auth.OpenSigner(dataDir)       // Ed25519, created once
//	token, err := signer.AgentToken(auth.AgentGrant{…})
//	mux.Handle("/.well-known/jwks.json", …signer.JWKS()…)
//
// # Tokens of agents
//
// An agent that delivers its result later comes with a token the task held. It
// speaks for that one task and only the router that made it verifies it, so a
// MAC will do, under a key derived from the signing key (RFC 5869): it costs an
// eighth of a signature.
//
//	header  {"typ":"caprouter-task+jwt","alg":"HS256"}, these bytes and no others
//	claims  iss, aud  the router         sub  the agent
//	        scope     "tasks:work"       task_id, request_id
//	        iat, exp, jti
//
// # Keys
//
// A Signer has a ring of keys: one signs, the others verify until their tokens
// have ended ([RotateKeys]). Tokens for callers are signed with a key derived from
// it, which is in no key set: no agent takes one for its own.
//
// # Signatures
//
// [Signer.Sign] is for data that is no token. The purpose is part of what is
// signed, behind a prefix no token begins with: a signature holds for one
// purpose.
//
// Keys and secrets never print: a Signer and a StaticKey format as <redacted> in
// fmt and slog.
package auth
