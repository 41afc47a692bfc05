package agentkit_test

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// forgeries returns invalid tokens that each differ from a valid one in one step.
func forgeries(r *fakeRouter) map[string]string {
	now := time.Now().Unix()
	header, claims := r.header(), validClaims()
	h, c := header.json(), claims.json()
	good := r.sign(h, c)
	parts := strings.Split(good, ".")
	mac := hmac.New(sha256.New, r.publicBytes())
	hs := b64([]byte(header.with("alg", "HS256").json())) + "." + parts[1]
	mac.Write([]byte(hs))
	otherRouter := &fakeRouter{kid: r.kid, key: ed25519.NewKeyFromSeed(make([]byte, 32))}
	if r.ec != nil {
		otherRouter.ec = p256Key(8)
	}
	signedAs := func(header object) string { return r.sign(header.json(), c) }
	claiming := func(name string, value any) string { return r.token(claims.with(name, value)) }
	flipped := []byte(good)
	flipped[len(flipped)-10] ^= 1

	return map[string]string{
		"empty":                 "",
		"garbage":               "not a token",
		"no signature":          parts[0] + "." + parts[1] + ".",
		"no last dot":           parts[0] + "." + parts[1],
		"extra dot":             good + ".",
		"four parts":            good + "." + parts[2],
		"leading dot":           "." + good,
		"empty claims":          parts[0] + ".." + parts[2],
		"JSON form":             `{"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`,
		"too long":              r.token(claims.with("pad", strings.Repeat("a", 8<<10))),
		"padding":               parts[0] + "." + parts[1] + "." + parts[2] + "==",
		"line break":            parts[0] + "." + parts[1] + "." + parts[2][:20] + "\n" + parts[2][20:],
		"carriage return":       parts[0] + "." + parts[1] + "." + parts[2][:20] + "\r" + parts[2][20:],
		"plain base64":          parts[0] + "." + parts[1] + "." + plainBase64(r, parts[0]+"."+parts[1]),
		"trailing bits":         trailingBits(good),
		"trailing space":        good + " ",
		"flipped bit":           string(flipped),
		"short signature":       good[:len(good)-4],
		"claims changed":        parts[0] + "." + b64([]byte(claims.with("sub", "bob").json())) + "." + parts[2],
		"key of another router": otherRouter.token(claims),
		"key in the header":     otherRouter.sign(header.with("jwk", json.RawMessage(otherRouter.jwk(r.kid))).json(), c),

		"alg none, signed":          signedAs(header.with("alg", "none")),
		"alg none, unsigned":        b64([]byte(header.with("alg", "none").json())) + "." + parts[1] + ".",
		"alg HS256, public key":     hs + "." + b64(mac.Sum(nil)),
		"alg in other case":         signedAs(header.with("alg", "EDDSA")),
		"alg is a curve":            signedAs(header.with("alg", "Ed25519")),
		"alg of another key":        signedAs(header.with("alg", otherAlg(r))),
		"alg with a longer hash":    signedAs(header.with("alg", "ES384")),
		"alg missing":               signedAs(header.with("alg", nil)),
		"alg is a list":             signedAs(header.with("alg", []string{"EdDSA"})),
		"duplicate alg":             r.sign(strings.Replace(h, `{`, `{"alg":"none",`, 1), c),
		"ALG and alg":               r.sign(strings.Replace(h, `{`, `{"ALG":"none",`, 1), c),
		"typ JWT":                   signedAs(header.with("typ", "JWT")),
		"typ missing":               signedAs(header.with("typ", nil)),
		"typ id+jwt":                signedAs(header.with("typ", "id+jwt")),
		"kid unknown":               signedAs(header.with("kid", "k2")),
		"kid missing":               signedAs(header.with("kid", nil)),
		"kid empty":                 signedAs(header.with("kid", "")),
		"kid is a path":             signedAs(header.with("kid", "../../etc/passwd")),
		"crit":                      signedAs(header.with("crit", []string{"exp"})),
		"crit empty":                signedAs(header.with("crit", []string{})),
		"jku":                       signedAs(header.with("jku", "https://evil.example/keys")),
		"x5u":                       signedAs(header.with("x5u", "https://evil.example/cert")),
		"x5c":                       signedAs(header.with("x5c", []string{"MIIB"})),
		"b64 false":                 signedAs(header.with("b64", false)),
		"zip":                       signedAs(header.with("zip", "DEF")),
		"header is a list":          r.sign(`["EdDSA"]`, c),
		"text after the header":     r.sign(h+"{}", c),
		"header not UTF-8":          r.sign(strings.Replace(h, "{", "{\"x\":\"\xff\",", 1), c),
		"aud is another agent":      claiming("aud", "billing_agent"),
		"aud is the router":         claiming("aud", "caprouter"),
		"aud missing":               claiming("aud", nil),
		"aud is a list":             claiming("aud", []string{"word_counter"}),
		"aud with two agents":       claiming("aud", []string{"word_counter", "billing_agent"}),
		"aud in other case":         claiming("aud", "Word_Counter"),
		"iss is another router":     claiming("iss", "evil"),
		"iss missing":               claiming("iss", nil),
		"sub missing":               claiming("sub", nil),
		"sub empty":                 claiming("sub", ""),
		"jti missing":               claiming("jti", nil),
		"expired":                   claiming("exp", now-1),
		"exp now":                   claiming("exp", now),
		"exp missing":               claiming("exp", nil),
		"exp zero":                  claiming("exp", 0),
		"exp is a string":           claiming("exp", fmt.Sprint(now+60)),
		"exp is a fraction":         claiming("exp", float64(now)+60.5),
		"exp out of range":          claiming("exp", float64(1e300)),
		"lifetime of a year":        claiming("exp", now+365*86400),
		"iat missing":               claiming("iat", nil),
		"iat in the future":         r.token(claims.with("iat", now+3600).with("exp", now+3660)),
		"nbf in the future":         claiming("nbf", now+3600),
		"tenant empty":              claiming("tenant", ""),
		"tenant is a list":          claiming("tenant", []string{"acme"}),
		"sub_id null":               r.sign(h, strings.Replace(c, `{`, `{"sub_id":null,`, 1)),
		"sub_id is a string":        claiming("sub_id", "alice"),
		"sub_id of another format":  claiming("sub_id", object{"format": "opaque", "id": "alice"}),
		"sub_id without format":     claiming("sub_id", object{"iss": "https://idp.example", "sub": "alice"}),
		"sub_id without iss":        claiming("sub_id", object{"format": "iss_sub", "sub": "alice"}),
		"sub_id with empty iss":     claiming("sub_id", object{"format": "iss_sub", "iss": "", "sub": "alice"}),
		"sub_id of another sub":     claiming("sub_id", object{"format": "iss_sub", "iss": "https://idp.example", "sub": "bob"}),
		"duplicate iss in sub_id":   r.sign(h, strings.Replace(c, `{`, `{"sub_id":{"format":"iss_sub","iss":"a","iss":"b","sub":"alice"},`, 1)),
		"ISS and iss in sub_id":     r.sign(h, strings.Replace(c, `{`, `{"sub_id":{"format":"iss_sub","iss":"a","ISS":"b","sub":"alice"},`, 1)),
		"task_id empty":             claiming("task_id", ""),
		"task_id is a list":         claiming("task_id", []string{taskID}),
		"duplicate aud":             r.sign(h, strings.Replace(c, `{`, `{"aud":"billing_agent",`, 1)),
		"duplicate exp":             r.sign(h, strings.Replace(c, `{`, fmt.Sprintf(`{"exp":%d,`, now+9999), 1)),
		"duplicate unknown claim":   r.sign(h, strings.Replace(c, `{`, `{"x":1,"x":2,`, 1)),
		"AUD and aud":               r.sign(h, strings.Replace(c, `{`, `{"AUD":"word_counter",`, 1)),
		"Exp instead of exp":        r.sign(h, claims.with("exp", nil).with("Exp", now+60).json()),
		"homoglyph of a claim name": r.sign(h, claims.with("scope", nil).with("\u017fcope", "task:execute").json()),
		"claims are a list":         r.sign(h, `[]`),
		"claims are null":           r.sign(h, `null`),
		"text after the claims":     r.sign(h, c+` {"aud":"word_counter"}`),
		"claims not UTF-8":          r.sign(h, strings.Replace(c, "alice", "al\xffice", 1)),
		"claims truncated":          r.sign(h, c[:len(c)-1]),
		"claims too deep":           r.sign(h, strings.Replace(c, `{`, `{"x":`+strings.Repeat("[", 300)+strings.Repeat("]", 300)+`,`, 1)),
	}
}

// plainBase64 returns a signature that differs from base64url.
func plainBase64(r *fakeRouter, signed string) string {
	for {
		text := base64.StdEncoding.EncodeToString(r.signature(signed))
		if strings.ContainsAny(text, "+/") || r.ec == nil { // an EdDSA signature is always the same
			return text
		}
	}
}

func otherAlg(r *fakeRouter) string {
	if r.ec != nil {
		return "EdDSA"
	}
	return "ES256"
}

// trailingBits sets one of the four unused bits of the last character, which gives another encoding
// of the same bytes.
func trailingBits(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + alphabet[last+1:last+2]
}

// A task can take a day, and its token is valid slightly longer.
func TestTokenVerifier_AcceptsTokensOfLongTasks(t *testing.T) {
	router := newFakeRouter(t)
	h := newAgent(t, router, nil, countWords)
	now := time.Now().Unix()
	for life, want := range map[int64]int{86_430: http.StatusOK, 90_000: http.StatusOK, 90_001: http.StatusUnauthorized} {
		w := serve(h, post("/", router.token(validClaims().with("iat", now).with("exp", now+life)), validTask().json()))
		if w.Code != want {
			t.Errorf("token valid for %d seconds: got %d, want %d", life, w.Code, want)
		}
	}
}

func TestTokenVerifier_RejectsForgedTokens(t *testing.T) {
	for _, keys := range []*fakeRouter{newKeyOnly(), newES256KeyOnly()} {
		t.Run(keys.alg(), func(t *testing.T) { testForgedTokens(t, startFakeRouter(t, keys)) })
	}
}

func testForgedTokens(t *testing.T, router *fakeRouter) {
	forged := forgeries(router)
	if len(forged) < 37 {
		t.Fatalf("got %d forgeries, want at least 37", len(forged))
	}
	h := newAgent(t, router, nil, func(context.Context, contract.Task) (contract.Result, error) {
		t.Error("got a call of the work, want the request rejected")
		return contract.Result{}, nil
	})
	for name, token := range forged {
		for _, path := range []string{"/", "/" + taskID + "/cancel"} {
			t.Run(name+" at "+path, func(t *testing.T) {
				w := serve(h, post(path, token, validTask().json()))
				checkProblem(t, w, http.StatusUnauthorized, "no valid token")
				if got := w.Header().Get("WWW-Authenticate"); got != `Bearer error="invalid_token"` {
					t.Errorf("WWW-Authenticate = %q", got)
				}
			})
		}
	}
}

func TestTokenVerifier_RejectsTokensForOtherTasks(t *testing.T) {
	router := newFakeRouter(t)
	h := newAgent(t, router, nil, func(context.Context, contract.Task) (contract.Result, error) {
		t.Error("got a call of the work, want the request rejected")
		return contract.Result{}, nil
	})
	for name, tc := range map[string]struct {
		claims object
		words  string
	}{
		"another task":             {validClaims().with("task_id", "0195f3a0-0000-7000-8000-000000000002"), "another task"},
		"no scope":                 {validClaims().with("scope", nil), "lacks the scope"},
		"another scope":            {validClaims().with("scope", "tasks:work"), "lacks the scope"},
		"scope with a longer name": {validClaims().with("scope", "task:execute:not"), "lacks the scope"},
		"scope as a suffix":        {validClaims().with("scope", "xtask:execute"), "lacks the scope"},
		"scope with a tab":         {validClaims().with("scope", "a\ttask:execute"), "lacks the scope"},
	} {
		for _, path := range []string{"/", "/" + taskID + "/cancel"} {
			t.Run(name+" at "+path, func(t *testing.T) {
				w := serve(h, post(path, router.token(tc.claims), validTask().json()))
				checkProblem(t, w, http.StatusForbidden, tc.words)
			})
		}
	}
}

func TestTokenVerifier_AcceptsValidTokens(t *testing.T) {
	for _, keys := range []*fakeRouter{newKeyOnly(), newES256KeyOnly()} {
		t.Run(keys.alg(), func(t *testing.T) { testValidTokens(t, startFakeRouter(t, keys)) })
	}
}

func testValidTokens(t *testing.T, router *fakeRouter) {
	h := newAgent(t, router, nil, countWords)
	now := time.Now().Unix()
	for name, token := range map[string]string{
		"for the task":              router.token(validClaims()),
		"for any task":              router.token(validClaims().with("task_id", nil)),
		"members of a newer router": router.token(validClaims().with("cnf", object{"x": 1}).with("nbf", now)),
		"several scopes":            router.token(validClaims().with("scope", "task:read task:execute")),
		"clock slightly ahead":      router.token(validClaims().with("iat", now+30).with("exp", now+90)),
		"unknown header member":     router.sign(router.header().with("v", 2).json(), validClaims().json()),
		"white space in the JSON":   router.sign(" "+router.header().json()+"\n", "\t"+validClaims().json()+" "),
	} {
		t.Run(name, func(t *testing.T) {
			res := result(t, serve(h, post("/", token, validTask().json())))
			if got := res.Text(); got != "3 words" {
				t.Errorf("got result %q, want 3 words", got)
			}
		})
	}
}

func TestTokenVerifier_ParsesAuthorizationHeader(t *testing.T) {
	router := newFakeRouter(t)
	h := newAgent(t, router, nil, countWords)
	good := router.token(validClaims())
	for _, tc := range []struct {
		name   string
		values []string
		ok     bool
	}{
		{"Bearer", []string{"Bearer " + good}, true},
		{"bearer", []string{"bearer " + good}, true},
		{"none", nil, false},
		{"two", []string{"Bearer " + good, "Bearer " + good}, false},
		{"Basic", []string{"Basic " + good}, false},
		{"token without a scheme", []string{good}, false},
		{"two spaces", []string{"Bearer  " + good}, false},
		{"a list", []string{"Bearer " + good + ", Basic x"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := post("/", "", validTask().json())
			r.Header["Authorization"] = tc.values
			w := serve(h, r)
			if tc.ok {
				result(t, w)
			} else {
				checkProblem(t, w, http.StatusUnauthorized, "no valid token")
			}
		})
	}
	t.Run("token in the query", func(t *testing.T) {
		r := post("/?access_token="+good, "", validTask().json())
		r.Header.Del("Authorization")
		checkProblem(t, serve(h, r), http.StatusUnauthorized, "no valid token")
	})
}

// FuzzToken looks for a token that is accepted without the router's signature. The seeds are all
// forgeries and a prefix of a valid token.
func FuzzToken(f *testing.F) {
	router := newFakeRouter(f)
	good := router.token(validClaims().with("exp", time.Now().Unix()+23*3600)) // valid longer than any fuzzing run
	for _, token := range forgeries(router) {
		f.Add(token)
	}
	f.Add(good[:len(good)-1])
	f.Add(trailingBits(good))
	h := newAgent(f, router, nil, countWords)
	f.Fuzz(func(t *testing.T, token string) {
		if token == good {
			t.Skip("valid token")
		}
		r := post("/", "", validTask().json())
		r.Header["Authorization"] = []string{"Bearer " + token}
		if w := serve(h, r); w.Code != http.StatusUnauthorized {
			t.Errorf("token %q: got status %d, want 401", token, w.Code)
		}
	})
}
