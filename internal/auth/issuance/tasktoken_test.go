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
	if got, want := string(unb64(t, parts[0])), `{"typ":"caprouter-task+jwt","alg":"HS256"}`; got != want {
		t.Errorf("header = %s, want %s", got, want)
	}
	var claims map[string]any
	if err := json.Unmarshal(unb64(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if id, _ := claims["jti"].(string); len(id) < 22 {
		t.Errorf("jti = %q, want 128 random bits", id)
	}
	if issued, _ := claims["iat"].(float64); time.Since(time.Unix(int64(issued), 0)) > time.Minute {
		t.Errorf("iat = %v, want now", claims["iat"])
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

// A token is accepted after a restart with the same key.
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
		ok   bool
	}{
		{"before the end", g.Expires.Add(-time.Nanosecond), true},
		{"at the end", g.Expires, false},
		{"long after", g.Expires.Add(24 * time.Hour), false},
		{"a clock set back a little", time.Now().Add(-30 * time.Second), true},
		{"a clock set back a lot", time.Now().Add(-2 * time.Minute), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := s.VerifyTaskToken(issuer, token, tc.now); (err == nil) != tc.ok {
				t.Errorf("VerifyTaskToken = %v, want it accepted: %v", err, tc.ok)
			}
		})
	}
}

func TestTaskToken_RejectsEmptyGrant(t *testing.T) {
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
		{"no task", issuer, func(g *contract.TaskGrant) { g.TaskID = "" }, "names no task"},
		{"no request", issuer, func(g *contract.TaskGrant) { g.RequestID = "" }, "names no task"},
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

// forge issues tokens with the key derived from a seed, as an attacker with the
// seed could.
type forge struct {
	seed   []byte
	header string
	hash   func() hash.Hash
	label  string
}

func newForge() forge {
	return forge{bytes.Repeat([]byte{3}, ed25519.SeedSize), `{"typ":"caprouter-task+jwt","alg":"HS256"}`, sha256.New, "caprouter task token v1"}
}

func (f forge) token(claims string) string {
	key, err := hkdf.Key(sha256.New, f.seed, nil, f.label, 32)
	if err != nil {
		panic(err)
	}
	signed := b64([]byte(f.header)) + "." + b64([]byte(claims))
	mac := hmac.New(f.hash, key)
	mac.Write([]byte(signed))
	return signed + "." + b64(mac.Sum(nil))
}

// claims is an object with members that a forgery changes; the order stays.
type claims [][2]string

func goodClaims() claims {
	now := time.Now().Unix()
	number := func(n int64) string { b, _ := json.Marshal(n); return string(b) }
	return claims{
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

func (c claims) with(name, value string) claims {
	changed := claims{}
	for _, m := range c {
		if m[0] != name {
			changed = append(changed, m)
		} else if value != "" {
			changed = append(changed, [2]string{name, value})
		}
	}
	return changed
}

func (c claims) json() string {
	members := make([]string, len(c))
	for i, m := range c {
		members[i] = `"` + m[0] + `":` + m[1]
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Forgeries without the key, and tokens with the right key but invalid claims.
func TestVerifyTaskToken_RejectsForgeries(t *testing.T) {
	f := newForge()
	s := openSeed(t, f.seed)
	good := goodClaims()
	genuine := f.token(good.json())
	if _, err := s.VerifyTaskToken(issuer, genuine, time.Now()); err != nil {
		t.Fatalf("valid token: %v", err) // or the rejections below prove nothing
	}
	parts := strings.Split(genuine, ".")
	public := ed25519Key(t, s)
	agentToken, err := s.AgentToken(grant())
	if err != nil {
		t.Fatal(err)
	}
	with := func(name, value string) string { return f.token(good.with(name, value).json()) }
	header := func(h string) string { g := f; g.header = h; return g.token(good.json()) }
	other := func(change func(*forge)) string { g := f; change(&g); return g.token(good.json()) }
	unsigned := b64([]byte(`{"typ":"caprouter-task+jwt","alg":"none"}`)) + "." + parts[1] + "."
	mac := unb64(t, parts[2])

	for name, token := range map[string]string{
		"nothing":                       "",
		"dots":                          "..",
		"words":                         "Bearer",
		"no signature":                  parts[0] + "." + parts[1] + ".",
		"two parts":                     parts[0] + "." + parts[1],
		"four parts":                    genuine + "." + parts[2],
		"a part before":                 "." + genuine,
		"a space behind":                genuine + " ",
		"a line break inside":           parts[0] + "." + parts[1][:9] + "\n" + parts[1][9:] + "." + parts[2],
		"padding":                       genuine + "=",
		"another spelling of the MAC":   genuine[:len(genuine)-1] + otherSpelling(genuine[len(genuine)-1]),
		"a bit of the MAC":              parts[0] + "." + parts[1] + "." + b64(append([]byte{mac[0] ^ 1}, mac[1:]...)),
		"half the MAC":                  parts[0] + "." + parts[1] + "." + b64(mac[:16]),
		"a MAC of zeros":                parts[0] + "." + parts[1] + "." + b64(make([]byte, 32)),
		"a bit of the claims":           parts[0] + "." + flip(parts[1]) + "." + parts[2],
		"claims of another task":        parts[0] + "." + b64([]byte(good.with("task_id", `"t2"`).json())) + "." + parts[2],
		"alg none":                      unsigned,
		"alg none, signed":              header(`{"typ":"caprouter-task+jwt","alg":"none"}`),
		"alg HS512":                     header(`{"typ":"caprouter-task+jwt","alg":"HS512"}`),
		"alg EdDSA":                     header(`{"typ":"caprouter-task+jwt","alg":"EdDSA"}`),
		"another typ":                   header(`{"typ":"JWT","alg":"HS256"}`),
		"the members in another order":  header(`{"alg":"HS256","typ":"caprouter-task+jwt"}`),
		"a space in the header":         header(`{"typ":"caprouter-task+jwt", "alg":"HS256"}`),
		"a kid":                         header(`{"typ":"caprouter-task+jwt","alg":"HS256","kid":"x"}`),
		"a key in the header":           header(`{"typ":"caprouter-task+jwt","alg":"HS256","jwk":{"kty":"oct","k":"AA"}}`),
		"SHA-512":                       other(func(g *forge) { g.hash = sha512.New }),
		"another key":                   other(func(g *forge) { g.seed = make([]byte, 32) }),
		"the public key as the secret":  other(func(g *forge) { g.seed = public }),
		"another label":                 other(func(g *forge) { g.label = "caprouter task token v2" }),
		"the public key as the MAC key": hs256(t, parts[0]+"."+parts[1], public),
		"the seed as the MAC key":       hs256(t, parts[0]+"."+parts[1], f.seed),
		"a token for an agent":          agentToken,
		"its claims under our header":   parts[0] + "." + strings.SplitN(agentToken, ".", 3)[1] + "." + strings.SplitN(agentToken, ".", 3)[2],
		"longer than 4 KiB":             with("jti", `"`+strings.Repeat("j", 4<<10)+`"`),
		"another issuer":                with("iss", `"other"`),
		"no issuer":                     with("iss", ""),
		"another audience":              with("aud", `"quality_agent"`),
		"two audiences":                 with("aud", `["caprouter","other"]`),
		"no audience":                   with("aud", ""),
		"another scope":                 with("scope", `"task:execute"`),
		"two scopes":                    with("scope", `"tasks:work admin"`),
		"no scope":                      with("scope", ""),
		"no agent":                      with("sub", ""),
		"an agent that is none":         with("sub", `"a b"`),
		"no task":                       with("task_id", ""),
		"no request":                    with("request_id", `""`),
		"no jti":                        with("jti", ""),
		"no exp":                        with("exp", ""),
		"expired":                       with("exp", "1"),
		"an exp that is a text":         with("exp", `"9999999999"`),
		"an exp with a fraction":        with("exp", `9999999999.5`),
		"an exp beyond numbers":         with("exp", `1e400`),
		"issued tomorrow":               with("iat", "99999999999"),
		"a claim more":                  f.token(strings.Replace(good.json(), "{", `{"admin":true,`, 1)),
		"a claim twice":                 f.token(strings.Replace(good.json(), "{", `{"task_id":"t2",`, 1)),
		"a claim in capitals":           f.token(strings.Replace(good.json(), `"task_id"`, `"TASK_ID"`, 1)),
		"text behind the claims":        f.token(good.json() + "{}"),
		"a list":                        f.token("[]"),
		"null":                          f.token("null"),
		"no claims":                     f.token(""),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.VerifyTaskToken(issuer, token, time.Now())
			if err == nil {
				t.Fatalf("VerifyTaskToken(%s) = %+v, want an error", token, got)
			}
			if got != (contract.TaskGrant{}) {
				t.Errorf("grant = %+v with the error %v, want none", got, err)
			}
			if len(token) > 20 && strings.Contains(err.Error(), token[len(token)-20:]) {
				t.Errorf("got an error that contains the token: %v", err)
			}
		})
	}
	t.Run("for another router", func(t *testing.T) {
		if _, err := s.VerifyTaskToken("other", genuine, time.Now()); err == nil {
			t.Error("got a token of another issuer accepted")
		}
		if _, err := newRouter(t).VerifyTaskToken(issuer, genuine, time.Now()); err == nil {
			t.Error("got a token of another key accepted")
		}
	})
}

// hs256 signs with the key itself, as in an algorithm confusion attack.
func hs256(t testing.TB, signed string, key []byte) string {
	t.Helper()
	mac, err := jwt.SigningMethodHS256.Sign(signed, key)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + b64(mac)
}

func unb64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// otherSpelling returns a last character that decodes to the same bytes if
// trailing bits are ignored: 43 characters encode 256 bits and 2 more.
func otherSpelling(last byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, last)^1])
}

func flip(s string) string {
	b := []byte(s)
	if b[5]++; b[5] == '{' {
		b[5] = 'a'
	}
	return string(b)
}

// No changed token is accepted, and no other text.
func TestVerifyTaskToken_RejectsMutations(t *testing.T) {
	s := newRouter(t)
	token := taskToken(t, s, taskGrant())
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(0, len(token)-1).Draw(rt, "at")
		c := rapid.Byte().Draw(rt, "byte")
		changed := token[:i] + string([]byte{c}) + token[i+1:]
		if _, err := s.VerifyTaskToken(issuer, changed, time.Now()); err == nil && changed != token {
			rt.Fatalf("got %q accepted, a change of %q", changed, token)
		}
	})
}

func FuzzVerifyTaskToken(f *testing.F) {
	s := newRouter(f)
	token := taskToken(f, s, taskGrant())
	for _, seed := range []string{token, "", "..", token + ".", newForge().token(goodClaims().json()), token[:60]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.VerifyTaskToken(issuer, text, time.Now()); err == nil && text != token {
			t.Errorf("got %q accepted", text)
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
