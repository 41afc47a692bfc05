// Package auth owns the router's key and what is made with it: the tokens agents
// get, those with which they answer later, and signatures over what the router
// writes down. It does not verify tokens of callers, and it decides nothing about
// who may do what: that is the matcher's, from what the edge authenticated.
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
//	        scope  "task:execute"        task_id  the one task (absent when reused)
//	        iat, exp, jti
//
// Agents check it against the public key the router serves as a key set:
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
// # Signatures
//
// [Signer.Sign] is for data that is no token. The purpose is part of what is
// signed, behind a prefix no token begins with: a signature holds for one
// purpose.
//
// The key never prints: a Signer formats as <redacted> in fmt and slog.
package auth
