package agentkit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	maxTokenBytes = 8 << 10
	maxTokenLife  = 25 * time.Hour // a task may last a day
	// clockLeeway is how far ahead the router's clock may be. No leeway is needed
	// for expiry, because tokens outlive their task's deadline by 30 s.
	clockLeeway = time.Minute

	tokenType = "at+jwt" // RFC 9068
	taskScope = "task:execute"
)

// tokenVerifier checks that the router sent a request to this agent.
type tokenVerifier struct {
	agentID string
	issuer  string
	now     func() time.Time
	keys    *keyCache
}

// joseHeader is the JOSE header. Parameters that specify a key or an extension must
// be absent.
type joseHeader struct {
	Type      string          `json:"typ"`
	Algorithm string          `json:"alg"`
	KeyID     string          `json:"kid"`
	Critical  json.RawMessage `json:"crit"`
	KeySetURL json.RawMessage `json:"jku"`
	Key       json.RawMessage `json:"jwk"`
	CertURL   json.RawMessage `json:"x5u"`
	CertChain json.RawMessage `json:"x5c"`
	Unencoded json.RawMessage `json:"b64"`
	Zip       json.RawMessage `json:"zip"`
}

// tokenClaims are the claims of a token. A nil pointer is an absent claim.
type tokenClaims struct {
	Issuer    string          `json:"iss"`
	Audience  string          `json:"aud"`
	Subject   string          `json:"sub"`
	SubjectID json.RawMessage `json:"sub_id"`
	Tenant    *string         `json:"tenant"`
	Scope     string          `json:"scope"`
	TaskID    *string         `json:"task_id"`
	IssuedAt  *int64          `json:"iat"`
	NotBefore *int64          `json:"nbf"`
	Expires   *int64          `json:"exp"`
	ID        string          `json:"jti"`
}

// subjectID is the subject with its issuer (RFC 9493, section 3.2.4).
type subjectID struct {
	Format  string `json:"format"`
	Issuer  string `json:"iss"`
	Subject string `json:"sub"`
}

// grant is the authorization by a valid token.
type grant struct {
	caller Identity
	taskID *string // nil = any task of the caller
}

// verifyRequest returns the grant of the request's token if all checks pass.
func (v *tokenVerifier) verifyRequest(r *http.Request) (*grant, *problem) {
	token, err := bearerToken(r.Header)
	if err != nil {
		return nil, unauthenticated(err)
	}
	return v.verifyToken(r.Context(), token)
}

// verifyCaller returns the caller of a task that was pulled together with the token.
func (v *tokenVerifier) verifyCaller(ctx context.Context, token, taskID string) (Identity, error) {
	granted, refusal := v.verifyToken(ctx, token)
	if refusal == nil {
		refusal = granted.checkTask(taskID)
	}
	if refusal != nil {
		return Identity{}, errors.New(refusal.Detail)
	}
	return granted.caller, nil
}

// verifyToken returns the grant of the token if all checks pass.
func (v *tokenVerifier) verifyToken(ctx context.Context, token string) (*grant, *problem) {
	payload, err := v.verifySignature(ctx, token)
	if err != nil {
		return nil, unauthenticated(err)
	}
	var c tokenClaims
	if err := decodeStrict(payload, &c); err != nil {
		return nil, unauthenticated(fmt.Errorf("claims: %w", err))
	}
	if err := v.checkClaims(&c); err != nil {
		return nil, unauthenticated(err)
	}
	caller, err := c.callerIdentity()
	if err != nil {
		return nil, unauthenticated(err)
	}
	if !slices.Contains(strings.Split(c.Scope, " "), taskScope) {
		return nil, problemf(http.StatusForbidden, "forbidden", "the token lacks the scope %s", taskScope)
	}
	return &grant{caller: caller, taskID: c.TaskID}, nil
}

// checkTask returns a problem if the token is for another task.
func (g *grant) checkTask(taskID string) *problem {
	if g.taskID != nil && *g.taskID != taskID {
		return problemf(http.StatusForbidden, "forbidden", "the token is for another task")
	}
	return nil
}

func unauthenticated(err error) *problem {
	return problemf(http.StatusUnauthorized, "unauthenticated", "no valid token: %v", err)
}

// bearerToken returns the token of the Authorization header (RFC 6750).
func bearerToken(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", fmt.Errorf("want one Authorization header, got %d", len(values))
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", errors.New("want the Bearer scheme")
	case len(token) > maxTokenBytes:
		return "", fmt.Errorf("longer than %d bytes", maxTokenBytes)
	}
	return token, nil
}

// verifySignature checks the form and signature of a compact token (RFC 7515) and
// returns its payload.
func (v *tokenVerifier) verifySignature(ctx context.Context, token string) ([]byte, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("want three parts with two dots")
	}
	var raw [3][]byte
	for i, part := range parts {
		var err error
		if raw[i], err = decodeSegment(part); err != nil {
			return nil, err
		}
	}
	var h joseHeader
	if err := decodeStrict(raw[0], &h); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if err := h.checkHeader(); err != nil {
		return nil, err
	}
	key, err := v.keys.lookupKey(ctx, h.KeyID)
	if err != nil {
		return nil, err
	}
	if h.Algorithm != key.alg {
		return nil, fmt.Errorf("alg must be %s for this key", key.alg)
	}
	if !key.verify(token[:len(parts[0])+1+len(parts[1])], raw[2]) {
		return nil, errors.New("the signature is not the router's")
	}
	return raw[1], nil
}

// decodeSegment decodes base64url and rejects line breaks, which the decoder would
// skip, so that a token has only one valid encoding.
func decodeSegment(s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) == 0 || base64.RawURLEncoding.EncodedLen(len(b)) != len(s) {
		return nil, errors.New("a part is not base64url")
	}
	return b, nil
}

func (h *joseHeader) checkHeader() error {
	switch {
	case h.Algorithm != algEdDSA && h.Algorithm != algES256: // before a fetch; the key decides
		return fmt.Errorf("alg must be %s or %s", algEdDSA, algES256)
	case h.Type != tokenType:
		return fmt.Errorf("typ must be %s", tokenType)
	case h.KeyID == "":
		return errors.New("kid is missing")
	}
	for _, m := range []json.RawMessage{h.Critical, h.KeySetURL, h.Key, h.CertURL, h.CertChain, h.Unencoded, h.Zip} {
		if m != nil {
			return errors.New("the header asks for something this agent does not do")
		}
	}
	return nil
}

// callerIdentity returns the caller. It rejects an unknown sub_id format, because
// without the issuer the subject could be mistaken for another one.
func (c *tokenClaims) callerIdentity() (Identity, error) {
	id := Identity{Subject: c.Subject}
	if c.Tenant != nil {
		if id.Tenant = *c.Tenant; id.Tenant == "" {
			return id, errors.New("tenant is empty")
		}
	}
	if c.SubjectID == nil {
		return id, nil
	}
	var subject subjectID
	if err := decodeStrict(c.SubjectID, &subject); err != nil {
		return id, fmt.Errorf("sub_id: %w", err)
	}
	if subject.Format != "iss_sub" || subject.Issuer == "" || subject.Subject != c.Subject {
		return id, errors.New("sub_id is not iss and sub of the subject")
	}
	id.Issuer = subject.Issuer
	return id, nil
}

// checkClaims checks if an authentic token is for this agent and valid now.
func (v *tokenVerifier) checkClaims(c *tokenClaims) error {
	switch {
	case c.Issuer != v.issuer:
		return errors.New("iss is not the router")
	case c.Audience != v.agentID:
		return errors.New("aud is another agent")
	case c.Subject == "":
		return errors.New("sub is missing")
	case c.ID == "":
		return errors.New("jti is missing")
	case c.TaskID != nil && *c.TaskID == "":
		return errors.New("task_id is empty")
	case c.IssuedAt == nil || c.Expires == nil:
		return errors.New("iat and exp are required")
	}
	now := v.now()
	issued, expires := time.Unix(*c.IssuedAt, 0), time.Unix(*c.Expires, 0)
	switch {
	case !now.Before(expires):
		return errors.New("it has expired")
	case issued.After(now.Add(clockLeeway)):
		return errors.New("it was issued in the future")
	case c.NotBefore != nil && time.Unix(*c.NotBefore, 0).After(now.Add(clockLeeway)):
		return errors.New("it is not valid yet")
	case expires.Sub(issued) > maxTokenLife:
		return errors.New("it lives too long")
	}
	return nil
}
