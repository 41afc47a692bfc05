package auth

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// ScopeTasksWork is the scope of a callback token: its bearer may post the result
// of a task.
const ScopeTasksWork = "tasks:work"

const (
	// taskKeyLabel separates the key of callback tokens from other derived keys.
	taskKeyLabel = "caprouter task token v1"
	// taskTokenHeader is the encoded header of every callback token. Only this
	// header is accepted, so that an attacker cannot choose anything in it. No
	// other token has this type.
	taskTokenHeader   = "eyJ0eXAiOiJjYXByb3V0ZXItdGFzaytqd3QiLCJhbGciOiJIUzI1NiJ9" // {"typ":"caprouter-task+jwt","alg":"HS256"}
	maxTaskTokenBytes = 4 << 10
	// taskTokenLeeway is the permitted clock skew.
	taskTokenLeeway = time.Minute
)

// taskClaims are the claims of a callback token. They are decoded by their tags, and
// encoded by appendJSON.
type taskClaims struct {
	Issuer    string `json:"iss"` // the router, which is also the audience
	Audience  string `json:"aud"`
	Subject   string `json:"sub"` // the agent
	Scope     string `json:"scope"`
	TaskID    string `json:"task_id"`
	RequestID string `json:"request_id"`
	Lease     int    `json:"lease,omitzero"` // of a task that the agent pulled
	IssuedAt  int64  `json:"iat"`
	Expires   int64  `json:"exp"`
	ID        string `json:"jti"`
}

// appendJSON appends the claims as strictjson would encode them. It does without
// reflection, because a token is issued for each task.
func (c *taskClaims) appendJSON(b []byte) []byte {
	b = appendMember(b, `{"iss":`, c.Issuer)
	b = appendMember(b, `,"aud":`, c.Audience)
	b = appendMember(b, `,"sub":`, c.Subject)
	b = appendMember(b, `,"scope":`, c.Scope)
	b = appendMember(b, `,"task_id":`, c.TaskID)
	b = appendMember(b, `,"request_id":`, c.RequestID)
	if c.Lease != 0 {
		b = strconv.AppendInt(append(b, `,"lease":`...), int64(c.Lease), 10)
	}
	return appendIdentity(b, c.IssuedAt, c.Expires, c.ID)
}

// taskMAC appends the encoded MAC of a callback token to b.
type taskMAC func(b, signed []byte) []byte

// newTaskMAC derives the MAC function for callback tokens from a secret. A MAC is
// sufficient and costs an eighth of a signature, because only the router verifies them.
func newTaskMAC(secret []byte) (taskMAC, error) {
	derived, err := hkdf.Key(sha256.New, secret, nil, taskKeyLabel, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key of task tokens: %w", err)
	}
	// An HMAC that is reset need not hash the key again.
	macs := sync.Pool{New: func() any { return hmac.New(sha256.New, derived) }}
	return func(b, signed []byte) []byte {
		mac := macs.Get().(hash.Hash)
		defer macs.Put(mac)
		mac.Reset()
		_, _ = mac.Write(signed) // a hash cannot fail
		var sum [sha256.Size]byte
		return base64.RawURLEncoding.AppendEncode(b, mac.Sum(sum[:0]))
	}, nil
}

// matches compares the encoded text, so that only the canonical encoding is accepted.
func (m taskMAC) matches(signed, mac string) bool {
	return subtle.ConstantTimeCompare([]byte(mac), m(nil, []byte(signed))) == 1
}

// taskSecrets are the secrets of callback tokens that replicas share. They are
// immutable.
type taskSecrets struct {
	sign   taskMAC
	accept []taskMAC // with that of sign
}

// minTaskSecretBytes is the minimum size of a secret: that of a MAC.
const minTaskSecretBytes = sha256.Size

// SetTaskSecrets replaces the secrets of callback tokens: the first one signs, and tokens
// of all are accepted, as are those that this router signed with its own keys before.
func (s *Signer) SetTaskSecrets(secrets [][]byte) error {
	shared := &taskSecrets{}
	for _, secret := range secrets {
		if len(secret) < minTaskSecretBytes {
			return fmt.Errorf("secret of task tokens: %d bytes, want at least %d", len(secret), minTaskSecretBytes)
		}
		mac, err := newTaskMAC(secret)
		if err != nil {
			return err
		}
		shared.accept = append(shared.accept, mac)
	}
	if len(shared.accept) == 0 {
		return errors.New("no secret of task tokens")
	}
	shared.sign = shared.accept[0]
	s.store.shared.Store(shared)
	return nil
}

// TaskToken returns a token with which the agent may post the result and the
// progress of one task to the issuing router or, if it has shared secrets, to any of its
// replicas.
func (s *Signer) TaskToken(issuer string, g contract.TaskGrant) (string, error) {
	now := s.store.now()
	if err := checkTaskGrant(issuer, g, now); err != nil {
		return "", fmt.Errorf("task token for agent %q: %w", g.AgentID, err)
	}
	claims := taskClaims{
		Issuer: issuer, Audience: issuer, Subject: g.AgentID, Scope: ScopeTasksWork,
		TaskID: g.TaskID, RequestID: g.RequestID, Lease: g.Lease,
		IssuedAt: now.Unix(), Expires: g.Expires.Unix(), ID: rand.Text(),
	}
	token := newSigningInput(taskTokenHeader, claims.appendJSON(make([]byte, 0, usualClaimsBytes)))
	mac := s.store.viewAt(now).signing.private.taskMAC
	if shared := s.store.shared.Load(); shared != nil {
		mac = shared.sign
	}
	signed := len(token)
	return string(mac(append(token, '.'), token[:signed])), nil
}

// VerifyTaskToken returns the grant of a callback token if a shared secret or a key of
// the ring issued it for the issuer and it has not expired. Errors do not contain the
// token.
func (s *Signer) VerifyTaskToken(issuer, token string, now time.Time) (contract.TaskGrant, error) {
	grant, err := s.verifyTaskToken(issuer, token, now)
	if err != nil {
		return contract.TaskGrant{}, fmt.Errorf("task token: %w", err)
	}
	return grant, nil
}

func (s *Signer) verifyTaskToken(issuer, token string, now time.Time) (contract.TaskGrant, error) {
	var none contract.TaskGrant
	if len(token) > maxTaskTokenBytes {
		return none, fmt.Errorf("longer than %d bytes", maxTaskTokenBytes)
	}
	claims, isOurs := strings.CutPrefix(token, taskTokenHeader+".")
	claims, mac, whole := strings.Cut(claims, ".")
	if !isOurs || !whole {
		return none, errors.New("not one of this router's")
	}
	if !s.verifyTaskMAC(token[:len(taskTokenHeader)+1+len(claims)], mac, now) {
		return none, errors.New("not signed by this router")
	}
	c, err := decodeTaskClaims(claims)
	if err != nil {
		return none, err
	}
	if c.Issuer != issuer || c.Audience != issuer || c.Scope != ScopeTasksWork || c.ID == "" {
		return none, errors.New("made for something else")
	}
	g := contract.TaskGrant{AgentID: c.Subject, RequestID: c.RequestID, TaskID: c.TaskID, Lease: c.Lease, Expires: time.Unix(c.Expires, 0)}
	if err := checkTaskGrant(issuer, g, now); err != nil {
		return none, err
	}
	if issued := time.Unix(c.IssuedAt, 0); issued.After(now.Add(taskTokenLeeway)) {
		return none, errors.New("issued in the future")
	}
	return g, nil
}

// verifyTaskMAC tries all shared secrets and accepted keys, because the header has no
// kid.
func (s *Signer) verifyTaskMAC(signed, mac string, now time.Time) bool {
	if shared := s.store.shared.Load(); shared != nil {
		for _, m := range shared.accept {
			if m.matches(signed, mac) {
				return true
			}
		}
	}
	for _, k := range s.store.viewAt(now).accepted {
		if k.private.taskMAC.matches(signed, mac) {
			return true
		}
	}
	return false
}

// decodeTaskClaims strictly decodes the claims of an authentic token.
func decodeTaskClaims(part string) (taskClaims, error) {
	var c taskClaims
	data, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || base64.RawURLEncoding.EncodedLen(len(data)) != len(part) {
		return c, errors.New("the claims are not base64url")
	}
	if err := strictjson.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("claims: %w", err)
	}
	return c, nil
}

// checkTaskGrant returns an error if a member of the grant is missing, or if it
// has expired.
func checkTaskGrant(issuer string, g contract.TaskGrant, now time.Time) error {
	switch {
	case issuer == "":
		return errors.New("no issuer")
	case !contract.ValidAgentID(g.AgentID):
		return errors.New("not an agent id")
	case g.TaskID == "" || g.RequestID == "":
		return errors.New("it names no task of a request")
	case g.Lease < 0:
		return errors.New("negative number of a lease")
	case !g.Expires.After(now):
		return errors.New("it has expired")
	}
	return nil
}
