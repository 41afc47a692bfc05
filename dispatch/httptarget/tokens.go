package httptarget

import (
	"errors"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/auth/issuance"
)

const maxTokens = 4096 // cached

// tokenCache mints the tokens for agents. If tokens are reused, it caches one
// for each agent and caller, which names no task. It is safe for concurrent use.
type tokenCache struct {
	source TokenSource
	issuer string
	reuse  time.Duration // 0 = a token for each task
	now    func() time.Time

	mu sync.Mutex
	// Two generations approximate an LRU cache: when young is full it becomes
	// old, and an entry that is used in old moves to young.
	young, old map[tokenKey]cachedToken
}

// tokenKey identifies a caller completely. It includes the signing key, because
// tokens of a revoked key must not be reused.
type tokenKey struct{ agent, issuer, tenant, subject, keyID string }

type cachedToken struct {
	token   string
	renewAt time.Time
}

func newTokenCache(source TokenSource, issuer string, reuse time.Duration, now func() time.Time) *tokenCache {
	return &tokenCache{source: source, issuer: issuer, reuse: reuse, now: now, young: map[tokenKey]cachedToken{}}
}

// agentToken returns the token of the call. It is valid beyond the deadline or,
// if tokens are reused, for the time of reuse.
func (t *tokenCache) agentToken(c dispatch.Call, deadline time.Time) (string, error) {
	if c.Caller == nil {
		return "", errors.New("the call has no caller")
	}
	grant := issuance.AgentGrant{
		Issuer: t.issuer, AgentID: c.Agent.ID,
		Subject: c.Caller.Subject, SubjectIssuer: c.Caller.Issuer, Tenant: c.Caller.Tenant,
	}
	if t.reuse == 0 {
		grant.TaskID, grant.Expires = c.Task.TaskID, deadline.Add(dispatch.TokenSlack)
		return t.source.AgentToken(grant)
	}
	key := tokenKey{
		agent: c.Agent.ID, issuer: c.Caller.Issuer, tenant: c.Caller.Tenant, subject: c.Caller.Subject, keyID: t.source.KeyID(),
	}
	now := t.now()
	if token, ok := t.lookupToken(key, now); ok {
		return token, nil
	}
	renewAt := now.Add(t.reuse)
	grant.Expires = renewAt.Add(dispatch.TokenSlack)
	token, err := t.source.AgentToken(grant) // concurrent calls may mint twice, which is cheaper than waiting
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.storeToken(key, cachedToken{token, renewAt})
	return token, nil
}

// taskToken returns the token with which the agent may send the result. It is
// valid for one task, so it is never reused.
func (t *tokenCache) taskToken(c dispatch.Call, due time.Time) (string, error) {
	return t.source.TaskToken(t.issuer, contract.TaskGrant{
		AgentID: c.Agent.ID, RequestID: c.Task.RequestID, TaskID: c.Task.TaskID, Expires: due.Add(dispatch.TokenSlack),
	})
}

// refreshToken returns a token for the call that has not expired. A token for one
// task outlives its deadline; one that is reused may need a successor.
func (t *tokenCache) refreshToken(c dispatch.Call, token string) (string, error) {
	if t.reuse == 0 {
		return token, nil
	}
	return t.agentToken(c, time.Time{})
}

func (t *tokenCache) lookupToken(key tokenKey, now time.Time) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cached, ok := t.young[key]
	if !ok {
		if cached, ok = t.old[key]; ok {
			t.storeToken(key, cached)
		}
	}
	return cached.token, ok && now.Before(cached.renewAt)
}

// storeToken adds a token. The caller holds mu.
func (t *tokenCache) storeToken(key tokenKey, cached cachedToken) {
	if len(t.young) >= maxTokens/2 {
		t.young, t.old = map[tokenKey]cachedToken{}, t.young
	}
	t.young[key] = cached
}
