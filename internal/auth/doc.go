// Package auth mints the tokens caprouter gives to agents and owns the key they
// are signed with. It does not verify tokens of callers, and it decides nothing
// about who may do what: that is the matcher's, from what the edge authenticated.
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
// The key never prints: a Signer formats as <redacted> in fmt and slog.
package auth
