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
	store *keyStore // a pointer, which fmt does not follow where a Signer is unexported
}

// keyStore is where a Signer has its keys from.
type keyStore struct {
	dir   string // "" = the keys live as long as the process
	now   func() time.Time
	state atomic.Pointer[keyStoreState]

	mu          sync.Mutex // one Reload at a time
	files       keyFiles   // what state was made of
	nextCleanup time.Time  // not before; see Reload
}

// keyStoreState is the keys with what they mean at the moment. It never changes.
type keyStoreState struct {
	keys keyring
	byID map[string]*signingKey
	view *keyView
}

// NewSigner returns a Signer with a new key that lives as long as the process.
func NewSigner() (*Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	pair, err := newKeyPair(key)
	if err != nil {
		return nil, err
	}
	r := &keyStore{now: time.Now}
	r.setKeys(keyring{{keyPair: pair, created: r.now()}})
	return &Signer{r}, nil
}

// setKeys makes the keys those of the ring.
func (r *keyStore) setKeys(keys keyring) {
	byID := make(map[string]*signingKey, len(keys))
	for _, k := range keys {
		byID[k.id] = k
	}
	r.state.Store(&keyStoreState{keys: keys, byID: byID, view: keys.viewAt(r.now())})
}

// viewAt returns what the keys mean at a time.
func (r *keyStore) viewAt(now time.Time) *keyView {
	state := r.state.Load()
	if state.view.isValidAt(now) {
		return state.view
	}
	next := *state
	next.view = state.keys.viewAt(now)
	r.state.CompareAndSwap(state, &next) // else somebody else was quicker, or has other keys
	return next.view
}

// JWKS returns the public halves of all keys whose tokens count as a key set
// (RFC 7517, RFC 8037). The bytes must not be changed.
func (s *Signer) JWKS() []byte { return s.store.viewAt(s.store.now()).jwks }

// currentKey is the key that signs now.
func (s *Signer) currentKey() *signingKey { return s.store.viewAt(s.store.now()).signing }

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
	now := s.store.now()
	if err := g.validate(now); err != nil {
		return "", fmt.Errorf("token for agent %q: %w", g.AgentID, err)
	}
	claims, err := encodeSegment(tokenClaims{
		Issuer:    g.Issuer,
		Audience:  g.AgentID,
		Subject:   g.Subject,
		SubjectID: g.subjectID(),
		Tenant:    g.Tenant,
		Actor:     actorClaim{Subject: g.Issuer},
		Scope:     ScopeTaskExecute,
		TaskID:    g.TaskID,
		IssuedAt:  now.Unix(),
		Expires:   g.Expires.Unix(),
		ID:        rand.Text(),
	})
	if err != nil {
		return "", err
	}
	key := s.store.viewAt(now).signing.private
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

// validate refuses a grant that would say less than it must: an empty audience or
// subject is a token for anybody.
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

// Format prints the redaction for every verb.
func (Signer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue logs the redaction.
func (Signer) LogValue() slog.Value { return slog.StringValue(redacted) }
