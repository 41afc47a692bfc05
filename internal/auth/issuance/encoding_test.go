package issuance

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/strictjson"
)

func TestTokenClaims_AppendJSONEncodesAsTagged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string { return rapid.String().Draw(t, label) }
		c := tokenClaims{
			Issuer: text("iss"), Audience: text("aud"), Subject: text("sub"), Tenant: text("tenant"), Actor: actorClaim{text("act")},
			Scope: text("scope"), TaskID: text("task_id"), IssuedAt: rapid.Int64().Draw(t, "iat"), Expires: rapid.Int64().Draw(t, "exp"), ID: text("jti"),
		}
		if rapid.Bool().Draw(t, "authenticated") {
			c.SubjectID = &subjectID{Format: text("format"), Issuer: text("idp"), Subject: text("user")}
		}
		checkEncoding(t, &c, c.appendJSON(nil))
	})
}

func TestTaskClaims_AppendJSONEncodesAsTagged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string { return rapid.String().Draw(t, label) }
		c := taskClaims{
			Issuer: text("iss"), Audience: text("aud"), Subject: text("sub"), Scope: text("scope"), TaskID: text("task_id"), RequestID: text("request_id"),
			Lease: rapid.IntRange(0, 3).Draw(t, "lease"), IssuedAt: rapid.Int64().Draw(t, "iat"), Expires: rapid.Int64().Draw(t, "exp"), ID: text("jti"),
		}
		checkEncoding(t, &c, c.appendJSON(nil))
	})
}

func checkEncoding(t *rapid.T, claims any, got []byte) {
	want, err := strictjson.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Fatalf("appendJSON = %s, want %s", got, want)
	}
}
