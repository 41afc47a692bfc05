package issuance

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/jwk"
)

// scopeTaskExecute is the scope of a token for an agent: it may execute a task.
const scopeTaskExecute = "task:execute"

// AgentGrant is the content of a token for an agent.
type AgentGrant struct {
	Issuer  string    // the router
	AgentID string    // the only audience
	Subject string    // the caller
	TaskID  string    // the only task; "" = any task of this caller for this agent
	Expires time.Time // in whole seconds, rounded down

	SubjectIssuer string // issuer of the caller; "" = no authentication
	Tenant        string // of the caller; "" = none
}

// AgentToken returns a signed token for the grant. Each call returns a different
// token.
func (i *Issuer) AgentToken(g AgentGrant) (string, error) {
	now := time.Now()
	if err := g.validate(now); err != nil {
		return "", fmt.Errorf("token for agent %q: %w", g.AgentID, err)
	}
	claims := tokenClaims{
		Issuer:    g.Issuer,
		Audience:  g.AgentID,
		Subject:   g.Subject,
		SubjectID: g.subjectID(),
		Tenant:    g.Tenant,
		Actor:     actorClaim{Subject: g.Issuer},
		Scope:     scopeTaskExecute,
		TaskID:    g.TaskID,
		IssuedAt:  now.Unix(),
		Expires:   g.Expires.Unix(),
		ID:        rand.Text(),
	}
	keys := i.keys.TokenKeys(now)
	key := keys.EdDSA
	if i.agentAlg == jwk.ES256 {
		key = keys.ES256
	}
	token, err := signToken(key, claims.appendJSON(make([]byte, 0, usualClaimsBytes)))
	if err != nil {
		return "", fmt.Errorf("sign token for agent %q: %w", g.AgentID, err)
	}
	return token, nil
}

// subjectID identifies the caller together with its issuer.
func (g *AgentGrant) subjectID() *subjectID {
	if g.SubjectIssuer == "" {
		return nil
	}
	return &subjectID{Format: subjectFormat, Issuer: g.SubjectIssuer, Subject: g.Subject}
}

// validate returns an error if the audience or the subject is empty, because such
// a token would be valid for any agent or caller.
func (g *AgentGrant) validate(now time.Time) error {
	switch {
	case !contract.ValidAgentID(g.AgentID):
		return errors.New("not an agent id")
	case g.Issuer == "":
		return errors.New("no issuer")
	case g.Subject == "":
		return errors.New("no subject")
	case !g.Expires.After(now):
		return errors.New("it would have expired already")
	}
	return nil
}
