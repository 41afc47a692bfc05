package auth

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/strictjwt"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// A token with a changed byte is rejected, also if the original token is cached.
func TestVerify_RejectsMutations(t *testing.T) {
	fx := newVerifierFixture(t)
	for _, k := range []testKey{fx.ed, fx.es, fx.rs, fx.hs} {
		token := k.token(t, fx.claims())
		fx.mustVerify(token)
		rapid.Check(t, func(rt *rapid.T) {
			i := rapid.IntRange(0, len(token)-1).Draw(rt, "at")
			c := rapid.Byte().Draw(rt, "byte")
			changed := token[:i] + string([]byte{c}) + token[i+1:]
			if _, err := fx.Verify(t.Context(), changed); err == nil && changed != token {
				rt.Fatalf("Verify(%q) = nil, want an error: the valid token is %q", changed, token)
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	fx := newVerifierFixture(f)
	good := map[string]bool{}
	for _, k := range []testKey{fx.ed, fx.es, fx.rs, fx.hs} {
		token := k.token(f, fx.claims())
		good[token] = true
		f.Add(token)
		f.Add(token[:len(token)/2])
		f.Add(k.sign(f, k.header().with("crit", `["b64"]`).text(), fx.claims().text()))
		f.Add(k.token(f, fx.claims().with("aud", `["caprouter","x"]`)))
		f.Add(k.token(f, fx.claims().prepend(`\u0069ss`, `"x"`)))
	}
	f.Add(encodeSegment(`{"alg":"none","typ":"JWT"}`) + "." + encodeSegment(fx.claims().text()) + ".")
	for _, seed := range []string{"", "..", "...", "a.b.c", encodeSegment("{}") + "." + encodeSegment("{}") + "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		caller, err := fx.Verify(t.Context(), token)
		if (err == nil) != good[token] || (caller == nil) != (err != nil) {
			t.Errorf("Verify(%q) = %v, %v; want a caller: %v", token, caller, err, good[token])
		}
	})
}

// FuzzClaims parses claims with a valid signature.
func FuzzClaims(f *testing.F) {
	fx := newVerifierFixture(f)
	for _, seed := range []jsonMembers{
		fx.claims(), fx.claims().with("exp", "1e400"), fx.claims().prepend("Sub", "1"), fx.claims().with("nbf", "1.5"),
		fx.claims().with("aud", `["caprouter"]`), fx.claims().with("scope", `"a  b"`), fx.claims().with("tenant", `{}`),
		fx.claims().with("sub", `"\u0061\ud83d\ude00\/"`), fx.claims().with("exp", "1.79000001e9"), fx.claims().with("x", `[1e400,{"sub":"x"}]`),
	} {
		f.Add(fx.hs.header().text(), seed.text())
	}
	f.Add(`{"alg":"HS256","typ":"JWT","kid":["hs"]}`, "[]")
	f.Fuzz(func(t *testing.T, header, claims string) {
		caller, err := fx.Verify(t.Context(), fx.hs.sign(t, header, claims))
		if err != nil {
			return
		}
		if caller.Subject == "" || caller.Issuer == "" || len(caller.Subject) > strictjwt.MaxNameBytes || len(caller.Tenant) > strictjwt.MaxNameBytes {
			t.Errorf("%s: got caller %+v, want a subject, an issuer and names of at most %d bytes", claims, caller, strictjwt.MaxNameBytes)
		}
		for _, scope := range caller.Scopes {
			if scope == "" || strings.ContainsAny(scope, " \"\\") {
				t.Errorf("%s: got scope %q, want one without spaces, quotes and backslashes", claims, scope)
			}
		}
		if diff := cmp.Diff(decodeCaller(t, claims), caller, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(contract.Caller{}, "KeyID")); diff != "" {
			t.Errorf("%s: caller (-strict decoder +parser):\n%s", claims, diff)
		}
	})
}

// decodeCaller decodes the caller in accepted claims with the decoder of all other JSON.
func decodeCaller(t *testing.T, claims string) *contract.Caller {
	t.Helper()
	var c struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
		Tenant  string `json:"tenant"`
		Scope   string `json:"scope"`
	}
	if err := strictjson.UnmarshalAllowUnknown([]byte(claims), &c); err != nil {
		t.Fatalf("%s: %v", claims, err)
	}
	scopes := strings.Fields(c.Scope)
	return &contract.Caller{
		Subject: c.Subject, Issuer: c.Issuer, Tenant: c.Tenant,
		Scopes: scopes, AllAgents: slices.Contains(scopes, "agent:*"),
	}
}

// The parser and the strict decoder return the same claims for any encoding of them.
func TestVerify_DecodesClaimsLikeStrictDecoder(t *testing.T) {
	fx := newVerifierFixture(t)
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZé中😀  /\"<>&")), 1, 20, -1)
	rapid.Check(t, func(rt *rapid.T) {
		encode := func(name, s string) string {
			if rapid.Bool().Draw(rt, name+" escaped") {
				return escapeJSON(s)
			}
			data, err := strictjson.Marshal(s)
			if err != nil {
				rt.Fatal(err)
			}
			return string(data)
		}
		subject, tenant := text.Draw(rt, "subject"), text.Draw(rt, "tenant")
		claims := fx.claims().with("sub", encode("subject", subject)).with("tenant", encode("tenant", tenant)).
			with("scope", encode("scope", rapid.SampledFrom([]string{"", "a", "agent:* b"}).Draw(rt, "scope"))).
			with("x", rapid.SampledFrom([]string{"1e400", "null", `{"sub":"root"}`, `[[]]`}).Draw(rt, "another claim"))
		got := fx.mustVerify(fx.hs.token(t, claims))
		if got.Subject != subject || got.Tenant != tenant {
			rt.Errorf("%s: got subject %q of tenant %q, want %q of %q", claims.text(), got.Subject, got.Tenant, subject, tenant)
		}
		if diff := cmp.Diff(decodeCaller(t, claims.text()), got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(contract.Caller{}, "KeyID")); diff != "" {
			rt.Errorf("%s: caller (-strict decoder +parser):\n%s", claims.text(), diff)
		}
	})
}

// escapeJSON returns a JSON string that has only escapes.
func escapeJSON(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	return quote(b.String())
}
