package auth

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// No changed byte is accepted, whether the token is cached or not.
func TestVerify_RejectsMutations(t *testing.T) {
	w := newWorld(t)
	for _, k := range []mintKey{w.ed, w.es, w.rs, w.hs} {
		token := k.token(t, w.claims())
		w.accepts(token)
		rapid.Check(t, func(rt *rapid.T) {
			i := rapid.IntRange(0, len(token)-1).Draw(rt, "at")
			c := rapid.Byte().Draw(rt, "byte")
			changed := token[:i] + string([]byte{c}) + token[i+1:]
			if _, err := w.Verify(t.Context(), changed); err == nil && changed != token {
				rt.Fatalf("got %q accepted, a change of %q", changed, token)
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	w := newWorld(f)
	good := map[string]bool{}
	for _, k := range []mintKey{w.ed, w.es, w.rs, w.hs} {
		token := k.token(f, w.claims())
		good[token] = true
		f.Add(token)
		f.Add(token[:len(token)/2])
		f.Add(k.sign(f, k.header().with("crit", `["b64"]`).text(), w.claims().text()))
		f.Add(k.token(f, w.claims().with("aud", `["caprouter","x"]`)))
		f.Add(k.token(f, w.claims().plus(`\u0069ss`, `"x"`)))
	}
	f.Add(seg(`{"alg":"none","typ":"JWT"}`) + "." + seg(w.claims().text()) + ".")
	for _, seed := range []string{"", "..", "...", "a.b.c", seg("{}") + "." + seg("{}") + "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		caller, err := w.Verify(t.Context(), token)
		if (err == nil) != good[token] || (caller == nil) != (err != nil) {
			t.Errorf("Verify(%q) = %v, %v", token, caller, err)
		}
	})
}

// FuzzClaims parses claims with a valid signature.
func FuzzClaims(f *testing.F) {
	w := newWorld(f)
	for _, seed := range []members{
		w.claims(), w.claims().with("exp", "1e400"), w.claims().plus("Sub", "1"), w.claims().with("nbf", "1.5"),
		w.claims().with("aud", `["caprouter"]`), w.claims().with("scope", `"a  b"`), w.claims().with("tenant", `{}`),
	} {
		f.Add(w.hs.header().text(), seed.text())
	}
	f.Add(`{"alg":"HS256","typ":"JWT","kid":["hs"]}`, "[]")
	f.Fuzz(func(t *testing.T, header, claims string) {
		caller, err := w.Verify(t.Context(), w.hs.sign(t, header, claims))
		if err != nil {
			return
		}
		if caller.Subject == "" || caller.Issuer == "" || len(caller.Subject) > maxNameBytes || len(caller.Tenant) > maxNameBytes {
			t.Errorf("%s: caller %+v", claims, caller)
		}
		for _, scope := range caller.Scopes {
			if scope == "" || strings.ContainsAny(scope, " \"\\") {
				t.Errorf("%s: scope %q", claims, scope)
			}
		}
	})
}
