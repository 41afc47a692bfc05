package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// ScopeTaskExecute is the scope of a token for an agent: it may execute a task.
const ScopeTaskExecute = "task:execute"

// redacted replaces a key in all output.
const redacted = "<redacted>"

// Signer issues tokens with the keys of a ring. It is safe for concurrent use.
type Signer struct {
	store    *keyStore // a pointer, because fmt does not follow it in an unexported field
	agentAlg string    // algorithm of tokens for agents; "" = EdDSA
}

// keyStore loads and holds the keys of a Signer.
type keyStore struct {
	dir    string // "" = keys in memory
	now    func() time.Time
	state  atomic.Pointer[keyStoreState]
	peers  atomic.Pointer[peerKeys]    // of other replicas; nil = none
	shared atomic.Pointer[taskSecrets] // of callback tokens; nil = derived from the signing keys

	mu          sync.Mutex // one Reload at a time
	files       keyFiles   // source of state
	nextCleanup time.Time  // earliest next cleanup; see Reload
}

// keyStoreState is an immutable pair of the keys and their current view.
type keyStoreState struct {
	keys keyring
	byID map[string]*signingKey
	view *keyView
}

// NewSigner returns a Signer with a new key in memory.
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
	return &Signer{store: r}, nil
}

// setKeys replaces the keys of the ring.
func (r *keyStore) setKeys(keys keyring) {
	byID := make(map[string]*signingKey, len(keys))
	for _, k := range keys {
		byID[k.id] = k
	}
	r.state.Store(&keyStoreState{keys: keys, byID: byID, view: keys.viewAt(r.now())})
}

// viewAt returns the use of the keys at a time.
func (r *keyStore) viewAt(now time.Time) *keyView {
	state := r.state.Load()
	if state.view.isValidAt(now) {
		return state.view
	}
	next := *state
	next.view = state.keys.viewAt(now)
	r.state.CompareAndSwap(state, &next) // if it fails, another goroutine stored a view or other keys
	return next.view
}

// JWKS returns the key set of all accepted keys (RFC 7517, RFC 8037), for both
// algorithms of tokens for agents, with those of the other replicas. The bytes must not
// be changed.
func (s *Signer) JWKS() []byte {
	own := s.store.viewAt(s.store.now())
	return s.store.peers.Load().appendTo(own.jwks, s.store.state.Load())
}

// currentKey returns the key that signs now.
func (s *Signer) currentKey() *signingKey { return s.store.viewAt(s.store.now()).signing }

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
func (s *Signer) AgentToken(g AgentGrant) (string, error) {
	now := s.store.now()
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
		Scope:     ScopeTaskExecute,
		TaskID:    g.TaskID,
		IssuedAt:  now.Unix(),
		Expires:   g.Expires.Unix(),
		ID:        rand.Text(),
	}
	key := s.store.viewAt(now).signing.private.agentKey(s.agentAlg)
	token := newSigningInput(key.header, claims.appendJSON(make([]byte, 0, usualClaimsBytes)))
	signature, err := key.sign(token)
	if err != nil {
		return "", fmt.Errorf("sign token for agent %q: %w", g.AgentID, err)
	}
	return string(base64.RawURLEncoding.AppendEncode(append(token, '.'), signature)), nil
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

// signatureDomain is the prefix of all data that Sign signs. No token has this
// prefix, so a signature over data is never valid for a token.
const signatureDomain = "caprouter/"

// KeyID returns the id of the current signing key: its RFC 7638 thumbprint.
func (s *Signer) KeyID() string { return s.currentKey().id }

// Sign returns the Ed25519 signature over data and the id of the key. purpose is a
// constant of the program; the signature is valid for this purpose only. Use the
// returned id, because KeyID may change meanwhile.
func (s *Signer) Sign(purpose string, data []byte) (keyID string, sig []byte) {
	key := s.currentKey()
	return key.id, key.private.signData(domainSeparated(purpose, data))
}

// Verify reports whether sig is the signature of the key over purpose and data. It
// accepts every key of the ring, because signed records outlive tokens and the
// private halves of keys.
func (s *Signer) Verify(purpose, keyID string, data, sig []byte) bool {
	key := s.store.state.Load().byID[keyID]
	return key != nil && ed25519.Verify(key.public, domainSeparated(purpose, data), sig)
}

// domainSeparated joins purpose and data with a separator, so that no other split
// of the bytes gives the same input.
func domainSeparated(purpose string, data []byte) []byte {
	if strings.Contains(purpose, "\x00") {
		panic("auth: a purpose must not hold a NUL")
	}
	message := make([]byte, 0, len(signatureDomain)+len(purpose)+1+len(data))
	message = append(message, signatureDomain...)
	message = append(message, purpose...)
	message = append(message, 0)
	return append(message, data...)
}

// Format prints the redaction for every verb.
func (Signer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue logs the redaction.
func (Signer) LogValue() slog.Value { return slog.StringValue(redacted) }
