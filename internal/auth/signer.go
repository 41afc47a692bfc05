package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// ScopeTaskExecute is the scope of a token for an agent: it may work on a task.
const ScopeTaskExecute = "task:execute"

// redacted stands wherever a key would be printed.
const redacted = "<redacted>"

// Signer mints tokens with the keys of a ring. It may be used from any goroutine.
type Signer struct {
	ring *ring // a pointer, which fmt does not follow where a Signer is unexported
}

// ring is where a Signer has its keys from.
type ring struct {
	dir   string // "" = the keys live as long as the process
	now   func() time.Time
	state atomic.Pointer[ringState]

	mu    sync.Mutex // one Reload at a time
	files keyFiles   // what state was made of
	sweep time.Time  // not before; see Reload
}

// ringState is the keys with what they mean at the moment. It never changes.
type ringState struct {
	keys keyring
	byID map[string]*ringKey
	view *view
}

// NewSigner returns a Signer with a new key that lives as long as the process.
func NewSigner() (*Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	pair, err := pairOf(key)
	if err != nil {
		return nil, err
	}
	r := &ring{now: time.Now}
	r.set(keyring{{keyPair: pair, made: r.now()}})
	return &Signer{r}, nil
}

// set makes the keys those of the ring.
func (r *ring) set(keys keyring) {
	byID := make(map[string]*ringKey, len(keys))
	for _, k := range keys {
		byID[k.id] = k
	}
	r.state.Store(&ringState{keys: keys, byID: byID, view: keys.at(r.now())})
}

// at returns what the keys mean at a time.
func (r *ring) at(now time.Time) *view {
	state := r.state.Load()
	if state.view.covers(now) {
		return state.view
	}
	next := *state
	next.view = state.keys.at(now)
	r.state.CompareAndSwap(state, &next) // else somebody else was quicker, or has other keys
	return next.view
}

// JWKS returns the public halves of all keys whose tokens count as a key set
// (RFC 7517, RFC 8037). The bytes must not be changed.
func (s *Signer) JWKS() []byte { return s.ring.at(s.ring.now()).jwks }

// signing is the key that signs now.
func (s *Signer) signing() *ringKey { return s.ring.at(s.ring.now()).signing }

// AgentGrant says which agent may do what for whom, until when.
type AgentGrant struct {
	Issuer  string    // the router
	AgentID string    // the only audience
	Subject string    // the caller
	TaskID  string    // the only task; "" = any task of this caller for this agent
	Expires time.Time // in whole seconds, rounded down

	SubjectIssuer string // who vouches for the caller; "" = nobody: there is no authentication
	Tenant        string // the caller's; "" = none
}

// AgentToken returns a signed token for the grant. Each one is different, also
// for the same grant.
func (s *Signer) AgentToken(g AgentGrant) (string, error) {
	now := s.ring.now()
	if err := g.check(now); err != nil {
		return "", fmt.Errorf("token for agent %q: %w", g.AgentID, err)
	}
	claims, err := segment(tokenClaims{
		Issuer:    g.Issuer,
		Audience:  g.AgentID,
		Subject:   g.Subject,
		SubjectID: g.subjectID(),
		Tenant:    g.Tenant,
		Actor:     actor{Subject: g.Issuer},
		Scope:     ScopeTaskExecute,
		TaskID:    g.TaskID,
		IssuedAt:  now.Unix(),
		Expires:   g.Expires.Unix(),
		ID:        rand.Text(),
	})
	if err != nil {
		return "", err
	}
	key := s.ring.at(now).signing.private
	signed := key.header + "." + claims
	signature, err := key.sign(signed)
	if err != nil {
		return "", fmt.Errorf("sign token for agent %q: %w", g.AgentID, err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// subjectID names the caller so that nobody of another issuer is meant.
func (g *AgentGrant) subjectID() *subjectID {
	if g.SubjectIssuer == "" {
		return nil
	}
	return &subjectID{Format: subjectFormat, Issuer: g.SubjectIssuer, Subject: g.Subject}
}

// check refuses a grant that would say less than it must: an empty audience or
// subject is a token for anybody.
func (g *AgentGrant) check(now time.Time) error {
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

// Format prints the redaction for every verb.
func (Signer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue logs the redaction.
func (Signer) LogValue() slog.Value { return slog.StringValue(redacted) }
