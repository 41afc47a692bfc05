package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// ScopeTaskExecute is the scope of a token for an agent: it may work on a task.
const ScopeTaskExecute = "task:execute"

// redacted stands wherever a key would be printed.
const redacted = "<redacted>"

// Signer mints tokens with one Ed25519 key. It may be used from any goroutine.
type Signer struct {
	// The key is in a closure because fmt walks through unexported fields of
	// other people's structs, pointers included, without asking our Format.
	sign     func(signed string) ([]byte, error) // tokens for agents
	signData func(message []byte) []byte         // see Sign
	taskMAC  func(signed string) string          // see TaskToken
	header   string                              // of every token for an agent, encoded
	keyID    string
	public   ed25519.PublicKey
	jwks     []byte
}

// NewSigner returns a Signer with a new key that lives as long as the process.
func NewSigner() (*Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return signerOf(key)
}

func signerOf(key ed25519.PrivateKey) (*Signer, error) {
	publicKey := key.Public().(ed25519.PublicKey)
	public := base64.RawURLEncoding.EncodeToString(publicKey)
	// RFC 7638: the required members alone, in this order, without spaces.
	thumbprint := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + public + `"}`))
	kid := base64.RawURLEncoding.EncodeToString(thumbprint[:])

	header, err := segment(tokenHeader{Type: "at+jwt", Algorithm: jwt.SigningMethodEdDSA.Alg(), KeyID: kid})
	if err != nil {
		return nil, err
	}
	jwks, err := strictjson.Marshal(jwkSet{Keys: []jwk{{
		Type: "OKP", Curve: "Ed25519", X: public, KeyID: kid, Use: "sig", Algorithm: jwt.SigningMethodEdDSA.Alg(),
	}}})
	if err != nil {
		return nil, fmt.Errorf("encode key set: %w", err)
	}
	taskMAC, err := taskMACOf(key)
	if err != nil {
		return nil, err
	}
	return &Signer{
		sign:     func(signed string) ([]byte, error) { return jwt.SigningMethodEdDSA.Sign(signed, key) },
		signData: func(message []byte) []byte { return ed25519.Sign(key, message) },
		taskMAC:  taskMAC,
		header:   header, keyID: kid, public: publicKey, jwks: jwks,
	}, nil
}

// JWKS returns the public key as a key set (RFC 7517, RFC 8037). The bytes must
// not be changed.
func (s *Signer) JWKS() []byte { return s.jwks }

// AgentGrant says which agent may do what for whom, until when.
type AgentGrant struct {
	Issuer  string    // the router
	AgentID string    // the only audience
	Subject string    // the caller
	TaskID  string    // the only task; "" = any task of this caller for this agent
	Expires time.Time // in whole seconds, rounded down
}

// AgentToken returns a signed token for the grant. Each one is different, also
// for the same grant.
func (s *Signer) AgentToken(g AgentGrant) (string, error) {
	now := time.Now()
	if err := g.check(now); err != nil {
		return "", fmt.Errorf("token for agent %q: %w", g.AgentID, err)
	}
	claims, err := segment(tokenClaims{
		Issuer:   g.Issuer,
		Audience: g.AgentID,
		Subject:  g.Subject,
		Actor:    actor{Subject: g.Issuer},
		Scope:    ScopeTaskExecute,
		TaskID:   g.TaskID,
		IssuedAt: now.Unix(),
		Expires:  g.Expires.Unix(),
		ID:       rand.Text(),
	})
	if err != nil {
		return "", err
	}
	signed := s.header + "." + claims
	signature, err := s.sign(signed)
	if err != nil {
		return "", fmt.Errorf("sign token for agent %q: %w", g.AgentID, err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
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
