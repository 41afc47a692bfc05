package auth

import (
	"encoding/base64"
	"fmt"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// tokenHeader is the JOSE header. The type at+jwt (RFC 9068) distinguishes the
// token from other JWTs of the same issuer.
type tokenHeader struct {
	Type      string `json:"typ"`
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
}

// tokenClaims are the claims of a token for an agent.
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

// encodeSegment encodes one segment of a compact token (RFC 7515, section 3.1).
func encodeSegment(v any) (string, error) {
	data, err := strictjson.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(data), nil
}
