package issuance

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// scopeTasksWork is the scope of a callback token: its bearer may post the result
// of a task.
const scopeTasksWork = "tasks:work"

const (
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

// TaskToken returns a token with which the agent may post the result and the
// progress of one task to the issuing router or, if it has shared secrets, to any of its
// replicas.
func (i *Issuer) TaskToken(issuer string, g contract.TaskGrant) (string, error) {
	now := time.Now()
	if err := checkTaskGrant(issuer, g, now); err != nil {
		return "", fmt.Errorf("task token for agent %q: %w", g.AgentID, err)
	}
	claims := taskClaims{
		Issuer: issuer, Audience: issuer, Subject: g.AgentID, Scope: scopeTasksWork,
		TaskID: g.TaskID, RequestID: g.RequestID, Lease: g.Lease,
		IssuedAt: now.Unix(), Expires: g.Expires.Unix(), ID: rand.Text(),
	}
	token := append(append(make([]byte, 0, usualTokenBytes), taskTokenHeader...), '.')
	token = base64.RawURLEncoding.AppendEncode(token, claims.appendJSON(make([]byte, 0, usualClaimsBytes)))
	signed := len(token)
	return string(i.keys.AppendTaskMAC(append(token, '.'), token[:signed], now)), nil
}

// VerifyTaskToken returns the grant of a callback token if a shared secret or a key of
// the ring issued it for the issuer and it has not expired. Errors do not contain the
// token.
func (i *Issuer) VerifyTaskToken(issuer, token string, now time.Time) (contract.TaskGrant, error) {
	grant, err := i.verifyTaskToken(issuer, token, now)
	if err != nil {
		return contract.TaskGrant{}, fmt.Errorf("task token: %w", err)
	}
	return grant, nil
}

func (i *Issuer) verifyTaskToken(issuer, token string, now time.Time) (contract.TaskGrant, error) {
	var none contract.TaskGrant
	if len(token) > maxTaskTokenBytes {
		return none, fmt.Errorf("longer than %d bytes", maxTaskTokenBytes)
	}
	claims, isOurs := strings.CutPrefix(token, taskTokenHeader+".")
	claims, mac, whole := strings.Cut(claims, ".")
	if !isOurs || !whole {
		return none, errors.New("not one of this router's")
	}
	if !i.keys.VerifyTaskMAC(token[:len(taskTokenHeader)+1+len(claims)], mac, now) {
		return none, errors.New("not signed by this router")
	}
	c, err := decodeTaskClaims(claims)
	if err != nil {
		return none, err
	}
	if c.Issuer != issuer || c.Audience != issuer || c.Scope != scopeTasksWork || c.ID == "" {
		return none, errors.New("issued for another purpose")
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
		return errors.New("it has no request or task")
	case g.Lease < 0:
		return errors.New("negative number of a lease")
	case !g.Expires.After(now):
		return errors.New("it has expired")
	}
	return nil
}
