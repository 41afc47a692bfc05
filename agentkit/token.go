package agentkit

import (
	"crypto/ed25519"
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
	// clockLeeway is how far ahead the router's clock may be. Behind needs
	// none: tokens outlive their task's deadline by half a minute.
	clockLeeway = time.Minute

	tokenType = "at+jwt" // RFC 9068
	tokenAlg  = "EdDSA"
	taskScope = "task:execute"
)

// tokenVerifier checks that a request comes from the router and is meant for us.
type tokenVerifier struct {
	agentID string
	issuer  string
	now     func() time.Time
	keys    *keyCache
}

// joseHeader is the JOSE header. Members that would have the verifier fetch or take
// a key from elsewhere, or understand more than it does, must be absent.
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

// tokenClaims is what the router says in a token. Pointers tell absent from zero.
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

// subjectID is the subject with who vouches for it (RFC 9493, section 3.2.4).
type subjectID struct {
	Format  string `json:"format"`
	Issuer  string `json:"iss"`
	Subject string `json:"sub"`
}

// grant is what a good token lets the router have done.
type grant struct {
	caller Identity
	taskID *string // nil = any task of the caller
}

// verifyRequest returns what the request's token says when every check passes.
func (v *tokenVerifier) verifyRequest(r *http.Request) (*grant, *problem) {
	token, err := bearerToken(r.Header)
	if err != nil {
		return nil, unauthenticated(err)
	}
	payload, err := v.verifySignature(r, token)
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

// checkTask reports whether the token may be used for the task.
func (g *grant) checkTask(taskID string) *problem {
	if g.taskID != nil && *g.taskID != taskID {
		return problemf(http.StatusForbidden, "forbidden", "the token is for another task")
	}
	return nil
}

func unauthenticated(err error) *problem {
	return problemf(http.StatusUnauthorized, "unauthenticated", "no valid token: %v", err)
}

// bearerToken returns the one token of the Authorization header (RFC 6750).
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

// verifySignature checks form and signature of a compact token (RFC 7515) and returns
// its payload, which the router has signed.
func (v *tokenVerifier) verifySignature(r *http.Request, token string) ([]byte, error) {
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
	key, err := v.keys.lookupKey(r.Context(), h.KeyID)
	if err != nil {
		return nil, err
	}
	if len(raw[2]) != ed25519.SignatureSize || !ed25519.Verify(key, []byte(token[:len(parts[0])+1+len(parts[1])]), raw[2]) {
		return nil, errors.New("the signature is not the router's")
	}
	return raw[1], nil
}

// decodeSegment decodes base64url and takes one spelling only: the decoder
// would skip line breaks, which makes two tokens of one.
func decodeSegment(s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) == 0 || base64.RawURLEncoding.EncodedLen(len(b)) != len(s) {
		return nil, errors.New("a part is not base64url")
	}
	return b, nil
}

func (h *joseHeader) checkHeader() error {
	switch {
	case h.Algorithm != tokenAlg:
		return fmt.Errorf("alg must be %s", tokenAlg)
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

// callerIdentity returns whom the work is done for. A subject named in a way we cannot
// read is refused: without its issuer it would be taken for somebody else.
func (c *tokenClaims) callerIdentity() (Identity, error) {
	who := Identity{Subject: c.Subject}
	if c.Tenant != nil {
		if who.Tenant = *c.Tenant; who.Tenant == "" {
			return who, errors.New("tenant is empty")
		}
	}
	if c.SubjectID == nil {
		return who, nil
	}
	var id subjectID
	if err := decodeStrict(c.SubjectID, &id); err != nil {
		return who, fmt.Errorf("sub_id: %w", err)
	}
	if id.Format != "iss_sub" || id.Issuer == "" || id.Subject != c.Subject {
		return who, errors.New("sub_id is not iss and sub of the subject")
	}
	who.Issuer = id.Issuer
	return who, nil
}

// checkClaims says whether an authentic token is ours and of now.
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
