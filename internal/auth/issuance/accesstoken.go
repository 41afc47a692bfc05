package issuance

import (
	"encoding/base64"
	"strconv"

	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// tokenClaims are the claims of a token for an agent. The tags document the names that
// appendJSON writes.
type tokenClaims struct {
	Issuer    string     `json:"iss"`
	Audience  string     `json:"aud"`
	Subject   string     `json:"sub"`
	SubjectID *subjectID `json:"sub_id,omitempty"`
	Tenant    string     `json:"tenant,omitempty"`
	Actor     actorClaim `json:"act"`
	Scope     string     `json:"scope"`
	TaskID    string     `json:"task_id,omitempty"`
	IssuedAt  int64      `json:"iat"`
	Expires   int64      `json:"exp"`
	ID        string     `json:"jti"`
}

// subjectFormat is the format of a subjectID.
const subjectFormat = "iss_sub"

// subjectID is a subject with its issuer (RFC 9493, section 3.2.4), because two
// issuers may use the same subject.
type subjectID struct {
	Format  string `json:"format"`
	Issuer  string `json:"iss"`
	Subject string `json:"sub"`
}

// actorClaim is the party that acts for the subject (RFC 8693, section 4.1).
type actorClaim struct {
	Subject string `json:"sub"`
}

// appendJSON appends the claims as strictjson would encode them. It does without
// reflection, because a token is issued for each task.
func (c *tokenClaims) appendJSON(b []byte) []byte {
	b = appendMember(b, `{"iss":`, c.Issuer)
	b = appendMember(b, `,"aud":`, c.Audience)
	b = appendMember(b, `,"sub":`, c.Subject)
	if c.SubjectID != nil {
		b = appendMember(b, `,"sub_id":{"format":`, c.SubjectID.Format)
		b = appendMember(b, `,"iss":`, c.SubjectID.Issuer)
		b = append(appendMember(b, `,"sub":`, c.SubjectID.Subject), '}')
	}
	if c.Tenant != "" {
		b = appendMember(b, `,"tenant":`, c.Tenant)
	}
	b = append(appendMember(b, `,"act":{"sub":`, c.Actor.Subject), '}')
	b = appendMember(b, `,"scope":`, c.Scope)
	if c.TaskID != "" {
		b = appendMember(b, `,"task_id":`, c.TaskID)
	}
	return appendIdentity(b, c.IssuedAt, c.Expires, c.ID)
}

// appendIdentity appends the claims with which all claims of the router's tokens end.
func appendIdentity(b []byte, issuedAt, expires int64, id string) []byte {
	b = strconv.AppendInt(append(b, `,"iat":`...), issuedAt, 10)
	b = strconv.AppendInt(append(b, `,"exp":`...), expires, 10)
	return append(appendMember(b, `,"jti":`, id), '}')
}

func appendMember(b []byte, name, value string) []byte {
	return strictjson.AppendString(append(b, name...), value)
}

const (
	// These are enough for most tokens of the router. A longer one costs an allocation.
	usualHeaderBytes = 128
	usualClaimsBytes = 512
	usualTokenBytes  = 768
)

// signToken returns an access token (RFC 9068) in compact serialization (RFC 7515, section
// 7.1). The type at+jwt distinguishes it from other JWTs of the same issuer.
func signToken(key *keyring.TokenKey, claims []byte) (string, error) {
	header := appendMember(make([]byte, 0, usualHeaderBytes), `{"typ":"at+jwt","alg":`, key.Algorithm)
	header = append(appendMember(header, `,"kid":`, key.ID), '}')
	token := base64.RawURLEncoding.AppendEncode(make([]byte, 0, usualTokenBytes), header)
	token = base64.RawURLEncoding.AppendEncode(append(token, '.'), claims)
	signature, err := key.Sign(token)
	if err != nil {
		return "", err
	}
	return string(base64.RawURLEncoding.AppendEncode(append(token, '.'), signature)), nil
}
