package issuance_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"hash"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

const issuer = "caprouter"

func taskGrant() contract.TaskGrant {
	return contract.TaskGrant{
		AgentID: "quality_agent", RequestID: "0195f3a0-r", TaskID: "0195f3a0-t",
		Expires: time.Unix(time.Now().Add(time.Minute).Unix(), 0),
	}
}

func taskToken(t testing.TB, s *testRouter, g contract.TaskGrant) string {
	t.Helper()
	token, err := s.TaskToken(issuer, g)
	if err != nil {
		t.Fatalf("TaskToken: %v", err)
	}
	return token
}

func TestTaskToken_CarriesClaims(t *testing.T) {
	s, g := newRouter(t), taskGrant()
	token := taskToken(t, s, g)
	got, err := s.VerifyTaskToken(issuer, token, time.Now())
	if err != nil {
		t.Fatalf("VerifyTaskToken: %v", err)
	}
	if diff := cmp.Diff(g, got); diff != "" {
		t.Errorf("grant (-want +got):\n%s", diff)
	}

	parts := strings.Split(token, ".")
	if got, want := string(decodeBase64(t, parts[0])), `{"typ":"caprouter-task+jwt","alg":"HS256"}`; got != want {
		t.Errorf("got header %s, want %s", got, want)
	}
	var claims map[string]any
	if err := json.Unmarshal(decodeBase64(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if id, _ := claims["jti"].(string); len(id) < 22 {
		t.Errorf("got jti %q, want 128 random bits", id)
	}
	if issued, _ := claims["iat"].(float64); time.Since(time.Unix(int64(issued), 0)) > time.Minute {
		t.Errorf("got iat %v, want now", claims["iat"])
	}
	delete(claims, "jti")
	delete(claims, "iat")
	want := map[string]any{
		"iss": issuer, "aud": issuer, "sub": "quality_agent", "scope": "tasks:work",
		"task_id": "0195f3a0-t", "request_id": "0195f3a0-r", "exp": float64(g.Expires.Unix()),
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// A token is accepted after a restart with the same key file.
func TestTaskToken_SurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	token := taskToken(t, openRouter(t, dir), taskGrant())
	if _, err := openRouter(t, dir).VerifyTaskToken(issuer, token, time.Now()); err != nil {
		t.Errorf("VerifyTaskToken after a restart = %v, want the grant", err)
	}
}

func TestTaskToken_Expires(t *testing.T) {
	s, g := newRouter(t), taskGrant()
	token := taskToken(t, s, g)
	for _, tc := range []struct {
		name string
		now  time.Time
		want bool // accepted
	}{
		{"before the expiry", g.Expires.Add(-time.Nanosecond), true},
		{"at the expiry", g.Expires, false},
		{"long after the expiry", g.Expires.Add(24 * time.Hour), false},
		{"clock set back by 30 s", time.Now().Add(-30 * time.Second), true},
		{"clock set back by 2 min", time.Now().Add(-2 * time.Minute), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := s.VerifyTaskToken(issuer, token, tc.now); (err == nil) != tc.want {
				t.Errorf("VerifyTaskToken = %v, want it accepted: %v", err, tc.want)
			}
		})
	}
}

func TestTaskToken_RejectsInvalidGrants(t *testing.T) {
	s := newRouter(t)
	for _, tc := range []struct {
		name   string
		issuer string
		change func(*contract.TaskGrant)
		want   string
	}{
		{"no issuer", "", func(*contract.TaskGrant) {}, "no issuer"},
		{"no agent", issuer, func(g *contract.TaskGrant) { g.AgentID = "" }, "not an agent id"},
		{"two agents", issuer, func(g *contract.TaskGrant) { g.AgentID = "a b" }, "not an agent id"},
		{"no task", issuer, func(g *contract.TaskGrant) { g.TaskID = "" }, "no request or task"},
		{"no request", issuer, func(g *contract.TaskGrant) { g.RequestID = "" }, "no request or task"},
		{"no expiry", issuer, func(g *contract.TaskGrant) { g.Expires = time.Time{} }, "expired"},
		{"expired", issuer, func(g *contract.TaskGrant) { g.Expires = time.Now().Add(-time.Second) }, "expired"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := taskGrant()
			tc.change(&g)
			if token, err := s.TaskToken(tc.issuer, g); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("TaskToken = %q, %v; want an error with %q", token, err, tc.want)
			}
		})
	}
}

// tokenForger issues tokens with the key derived from a seed, without the checks of the issuer.
type tokenForger struct {
	seed   []byte
	header string
	hash   func() hash.Hash
	label  string
}

func newTokenForger() tokenForger {
	return tokenForger{bytes.Repeat([]byte{3}, ed25519.SeedSize), `{"typ":"caprouter-task+jwt","alg":"HS256"}`, sha256.New, "caprouter task token v1"}
}

func (f tokenForger) token(claims string) string {
	key, err := hkdf.Key(sha256.New, f.seed, nil, f.label, 32)
	if err != nil {
		panic(err)
	}
	signed := encodeBase64([]byte(f.header)) + "." + encodeBase64([]byte(claims))
	mac := hmac.New(f.hash, key)
	mac.Write([]byte(signed))
	return signed + "." + encodeBase64(mac.Sum(nil))
}

// claimList are the names and values of claims, in order. A value is JSON text.
type claimList [][2]string

func validClaims() claimList {
	now := time.Now().Unix()
	number := func(n int64) string { b, _ := json.Marshal(n); return string(b) }
	return claimList{
		{"iss", `"caprouter"`},
		{"aud", `"caprouter"`},
		{"sub", `"quality_agent"`},
		{"scope", `"tasks:work"`},
		{"task_id", `"t1"`},
		{"request_id", `"r1"`},
		{"iat", number(now)},
		{"exp", number(now + 60)},
		{"jti", `"j1"`},
	}
}

// with replaces the value of a claim; "" removes the claim.
func (c claimList) with(name, value string) claimList {
	changed := claimList{}
	for _, m := range c {
		if m[0] != name {
			changed = append(changed, m)
		} else if value != "" {
			changed = append(changed, [2]string{name, value})
		}
	}
	return changed
}

func (c claimList) json() string {
	members := make([]string, len(c))
	for i, m := range c {
		members[i] = `"` + m[0] + `":` + m[1]
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Tokens without a valid MAC, and tokens with a valid MAC but invalid claims.
func TestVerifyTaskToken_RejectsForgeries(t *testing.T) {
	f := newTokenForger()
	s := openRouterWithSeed(t, f.seed)
	claims := validClaims()
	valid := f.token(claims.json())
	if _, err := s.VerifyTaskToken(issuer, valid, time.Now()); err != nil {
		t.Fatalf("valid token: VerifyTaskToken = %v, want the grant", err)
	}
	parts := strings.Split(valid, ".")
	public := ed25519Key(t, s)
	agentToken, err := s.AgentToken(agentGrant())
	if err != nil {
		t.Fatal(err)
	}
	with := func(name, value string) string { return f.token(claims.with(name, value).json()) }
	withHeader := func(h string) string { g := f; g.header = h; return g.token(claims.json()) }
	withForger := func(change func(*tokenForger)) string { g := f; change(&g); return g.token(claims.json()) }
	unsigned := encodeBase64([]byte(`{"typ":"caprouter-task+jwt","alg":"none"}`)) + "." + parts[1] + "."
	mac := decodeBase64(t, parts[2])

	for name, token := range map[string]string{
		"empty":                                "",
		"dots":                                 "..",
		"one word":                             "Bearer",
		"no signature":                         parts[0] + "." + parts[1] + ".",
		"two parts":                            parts[0] + "." + parts[1],
		"four parts":                           valid + "." + parts[2],
		"leading part":                         "." + valid,
		"trailing space":                       valid + " ",
		"line break in the claims":             parts[0] + "." + parts[1][:9] + "\n" + parts[1][9:] + "." + parts[2],
		"padding":                              valid + "=",
		"non-zero trailing bits of the MAC":    valid[:len(valid)-1] + changeTrailingBits(valid[len(valid)-1]),
		"changed bit in the MAC":               parts[0] + "." + parts[1] + "." + encodeBase64(append([]byte{mac[0] ^ 1}, mac[1:]...)),
		"first half of the MAC":                parts[0] + "." + parts[1] + "." + encodeBase64(mac[:16]),
		"MAC of zeros":                         parts[0] + "." + parts[1] + "." + encodeBase64(make([]byte, 32)),
		"changed byte in the claims":           parts[0] + "." + changeByte(parts[1]) + "." + parts[2],
		"claims of another task":               parts[0] + "." + encodeBase64([]byte(claims.with("task_id", `"t2"`).json())) + "." + parts[2],
		"alg none":                             unsigned,
		"alg none, signed":                     withHeader(`{"typ":"caprouter-task+jwt","alg":"none"}`),
		"alg HS512":                            withHeader(`{"typ":"caprouter-task+jwt","alg":"HS512"}`),
		"alg EdDSA":                            withHeader(`{"typ":"caprouter-task+jwt","alg":"EdDSA"}`),
		"another typ":                          withHeader(`{"typ":"JWT","alg":"HS256"}`),
		"other order of members in the header": withHeader(`{"alg":"HS256","typ":"caprouter-task+jwt"}`),
		"space in the header":                  withHeader(`{"typ":"caprouter-task+jwt", "alg":"HS256"}`),
		"kid":                                  withHeader(`{"typ":"caprouter-task+jwt","alg":"HS256","kid":"x"}`),
		"embedded key":                         withHeader(`{"typ":"caprouter-task+jwt","alg":"HS256","jwk":{"kty":"oct","k":"AA"}}`),
		"SHA-512":                              withForger(func(g *tokenForger) { g.hash = sha512.New }),
		"another key":                          withForger(func(g *tokenForger) { g.seed = make([]byte, 32) }),
		"public key as the seed":               withForger(func(g *tokenForger) { g.seed = public }),
		"another label":                        withForger(func(g *tokenForger) { g.label = "caprouter task token v2" }),
		"public key as the MAC key":            signHS256(t, parts[0]+"."+parts[1], public),
		"seed as the MAC key":                  signHS256(t, parts[0]+"."+parts[1], f.seed),
		"agent token":                          agentToken,
		"agent token with the header of a task token": parts[0] + "." + strings.SplitN(agentToken, ".", 3)[1] + "." + strings.SplitN(agentToken, ".", 3)[2],
		"longer than 4 KiB":                           with("jti", `"`+strings.Repeat("j", 4<<10)+`"`),
		"another issuer":                              with("iss", `"other"`),
		"no issuer":                                   with("iss", ""),
		"another audience":                            with("aud", `"quality_agent"`),
		"two audiences":                               with("aud", `["caprouter","other"]`),
		"no audience":                                 with("aud", ""),
		"another scope":                               with("scope", `"task:execute"`),
		"two scopes":                                  with("scope", `"tasks:work admin"`),
		"no scope":                                    with("scope", ""),
		"no agent":                                    with("sub", ""),
		"invalid agent id":                            with("sub", `"a b"`),
		"no task":                                     with("task_id", ""),
		"no request":                                  with("request_id", `""`),
		"no jti":                                      with("jti", ""),
		"no exp":                                      with("exp", ""),
		"expired":                                     with("exp", "1"),
		"exp is a string":                             with("exp", `"9999999999"`),
		"exp with a fraction":                         with("exp", `9999999999.5`),
		"exp out of range":                            with("exp", `1e400`),
		"issued tomorrow":                             with("iat", "99999999999"),
		"unknown claim":                               f.token(strings.Replace(claims.json(), "{", `{"admin":true,`, 1)),
		"duplicate claim":                             f.token(strings.Replace(claims.json(), "{", `{"task_id":"t2",`, 1)),
		"claim in upper case":                         f.token(strings.Replace(claims.json(), `"task_id"`, `"TASK_ID"`, 1)),
		"text after the claims":                       f.token(claims.json() + "{}"),
		"claims are a list":                           f.token("[]"),
		"claims are null":                             f.token("null"),
		"no claims":                                   f.token(""),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.VerifyTaskToken(issuer, token, time.Now())
			if err == nil {
				t.Fatalf("VerifyTaskToken(%s) = %+v, want an error", token, got)
			}
			if got != (contract.TaskGrant{}) {
				t.Errorf("got grant %+v with error %v, want none", got, err)
			}
			if len(token) > 20 && strings.Contains(err.Error(), token[len(token)-20:]) {
				t.Errorf("got error %v, want one without the token", err)
			}
		})
	}
	t.Run("valid for another router", func(t *testing.T) {
		if _, err := s.VerifyTaskToken("other", valid, time.Now()); err == nil {
			t.Error("another issuer: got no error, want one")
		}
		if _, err := newRouter(t).VerifyTaskToken(issuer, valid, time.Now()); err == nil {
			t.Error("another key: got no error, want one")
		}
	})
}

// signHS256 signs with the key itself, as in an algorithm confusion attack.
func signHS256(t testing.TB, signed string, key []byte) string {
	t.Helper()
	mac, err := jwt.SigningMethodHS256.Sign(signed, key)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encodeBase64(mac)
}

func decodeBase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// changeTrailingBits changes the last character of 43, which encode 256 bits and 2 trailing
// bits. A decoder that ignores trailing bits returns the same bytes.
func changeTrailingBits(last byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, last)^1])
}

func changeByte(s string) string {
	b := []byte(s)
	if b[5]++; b[5] == '{' {
		b[5] = 'a'
	}
	return string(b)
}

// A token with a changed byte is rejected.
func TestVerifyTaskToken_RejectsMutations(t *testing.T) {
	s := newRouter(t)
	token := taskToken(t, s, taskGrant())
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(0, len(token)-1).Draw(rt, "at")
		c := rapid.Byte().Draw(rt, "byte")
		changed := token[:i] + string([]byte{c}) + token[i+1:]
		if _, err := s.VerifyTaskToken(issuer, changed, time.Now()); err == nil && changed != token {
			rt.Fatalf("VerifyTaskToken(%q) = nil, want an error: the valid token is %q", changed, token)
		}
	})
}

func FuzzVerifyTaskToken(f *testing.F) {
	s := newRouter(f)
	token := taskToken(f, s, taskGrant())
	for _, seed := range []string{token, "", "..", token + ".", newTokenForger().token(validClaims().json()), token[:60]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.VerifyTaskToken(issuer, text, time.Now()); err == nil && text != token {
			t.Errorf("VerifyTaskToken(%q) = nil, want an error", text)
		}
	})
}

func BenchmarkTaskToken(b *testing.B) {
	s, g := newRouter(b), taskGrant()
	g.Expires = time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.TaskToken(issuer, g); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyTaskToken(b *testing.B) {
	s, g := newRouter(b), taskGrant()
	g.Expires = time.Now().Add(time.Hour)
	token, now := taskToken(b, s, g), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.VerifyTaskToken(issuer, token, now); err != nil {
			b.Fatal(err)
		}
	}
}
