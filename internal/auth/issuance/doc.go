// Package issuance issues the tokens of the router: for agents, for tasks and for callers.
// It decides what such a token contains; the keys are those of package keyring.
//
//	issuer, err := issuance.New(ring, jwk.ES256) // EdDSA, or ES256 for agents without Ed25519
//	token, err := issuer.AgentToken(issuance.AgentGrant{…})
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
// for each of the two algorithms.
//
// # Tokens of agents
//
// An agent that posts its result later uses the callback token of the task. Only
// the router that issued it, and its replicas, verify it, so a MAC is sufficient, with a
// key derived from the signing key or from a secret of the replicas (RFC 5869). It costs
// an eighth of a signature. [Issuer.VerifyTaskToken] verifies it.
//
//	header  {"typ":"caprouter-task+jwt","alg":"HS256"}, exactly these bytes
//	claims  iss, aud  the router         sub  the agent
//	        scope     "tasks:work"       task_id, request_id
//	        iat, exp, jti
//
// # Tokens for callers
//
// A token for a caller has the form that package auth verifies, and is signed with a key
// that is in no key set, so that no agent accepts it.
package issuance
