package httptarget

import (
	"errors"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/auth"
)

const (
	// tokenSlack is how long a token outlives its use: for the way to the agent,
	// its clock, and the cancellation that may follow the deadline.
	tokenSlack = 30 * time.Second
	maxTokens  = 4096 // remembered
)

// tokens mints tokens and, where they are reused, remembers them: for each
// agent and caller one that names no task.
type tokens struct {
	source TokenSource
	issuer string
	reuse  time.Duration // 0 = a token for each task
	now    func() time.Time

	mu sync.Mutex
	// Two generations are as good as a list by last use, and simpler: when the
	// young one is full, it becomes the old one; what is used there, moves over.
	young, old map[tokenKey]remembered
}

// tokenKey holds all that makes two callers two. It holds the key that signed as
// well: one that signs no more may have been withdrawn, and its tokens with it.
type tokenKey struct{ agent, issuer, tenant, subject, keyID string }

type remembered struct {
	token string
	until time.Time // after that a new one is minted
}

func newTokens(source TokenSource, issuer string, reuse time.Duration, now func() time.Time) *tokens {
	return &tokens{source: source, issuer: issuer, reuse: reuse, now: now, young: map[tokenKey]remembered{}}
}

// get returns a token for the call, good beyond end or, where it is reused, for
// its own time.
func (t *tokens) get(c dispatch.Call, end time.Time) (string, error) {
	if c.Caller == nil {
		return "", errors.New("the call names no caller")
	}
	grant := auth.AgentGrant{
		Issuer: t.issuer, AgentID: c.Agent.ID,
		Subject: c.Caller.Subject, SubjectIssuer: c.Caller.Issuer, Tenant: c.Caller.Tenant,
	}
	if t.reuse == 0 {
		grant.TaskID, grant.Expires = c.Task.TaskID, end.Add(tokenSlack)
		return t.source.AgentToken(grant)
	}
	key := tokenKey{
		agent: c.Agent.ID, issuer: c.Caller.Issuer, tenant: c.Caller.Tenant, subject: c.Caller.Subject, keyID: t.source.KeyID(),
	}
	now := t.now()
	if token, ok := t.recall(key, now); ok {
		return token, nil
	}
	until := now.Add(t.reuse)
	grant.Expires = until.Add(tokenSlack)
	token, err := t.source.AgentToken(grant) // two at once may both mint: better than waiting
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remember(key, remembered{token, until})
	return token, nil
}

// forTask returns a token with which the agent may deliver the call's Result.
// It is never reused: it is good for one task.
func (t *tokens) forTask(c dispatch.Call, due time.Time) (string, error) {
	return t.source.TaskToken(t.issuer, contract.TaskGrant{
		AgentID: c.Agent.ID, RequestID: c.Task.RequestID, TaskID: c.Task.TaskID, Expires: due.Add(tokenSlack),
	})
}

// current returns a token for the call that has not expired, which token may
// have where it is reused.
func (t *tokens) current(c dispatch.Call, token string) (string, error) {
	if t.reuse == 0 {
		return token, nil
	}
	return t.get(c, time.Time{})
}

func (t *tokens) recall(key tokenKey, now time.Time) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.young[key]
	if !ok {
		if r, ok = t.old[key]; ok {
			t.remember(key, r)
		}
	}
	return r.token, ok && now.Before(r.until)
}

// remember must be called with mu held.
func (t *tokens) remember(key tokenKey, r remembered) {
	if len(t.young) >= maxTokens/2 {
		t.young, t.old = map[tokenKey]remembered{}, t.young
	}
	t.young[key] = r
}
